"""Load models with mlx-lm and run them. No other package of the engine calls mlx-lm."""
