"""Checks of answers and of cached state against slow, obvious computations.

Of the engine's modules only core.py imports this package.
"""
