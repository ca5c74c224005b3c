"""Tiny configurations of mlx-lm's model types, by family."""
