"""Answers and stored state held to slow, obvious computations. Only engine.core knows this package."""
