"""The seam to mlx-lm: model folders in, a uniform forward pass out."""
