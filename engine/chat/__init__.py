"""Convert messages to token ids and reply token ids to text. Nothing here imports mlx."""
