"""Slow and simple computations that check the engine's answers and cached state.

Of the engine's modules, only core.py and served_model.py import this package.
"""
