"""Checks of answers and stored state against slow, obvious computations. Only engine.core imports this package."""
