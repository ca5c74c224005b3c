"""Tiny configurations of mlx-lm's model types, one module for each family."""
