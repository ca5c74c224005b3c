"""Convert messages to token ids, and token ids of replies to text. Nothing here imports mlx."""
