"""GGUF files to model folders that mlx-lm loads. Free of mlx, so it may run on any thread."""
