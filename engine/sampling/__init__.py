"""Draw tokens from filtered logits."""
