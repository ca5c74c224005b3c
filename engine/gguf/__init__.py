"""Convert GGUF files to model folders that mlx-lm can load.

This package does not import mlx, so its code may run on any thread.
"""
