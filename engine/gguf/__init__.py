"""Convert GGUF files to model folders that mlx-lm can load.

Nothing here imports mlx, so the code may run on any thread.
"""
