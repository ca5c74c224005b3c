"""Drawing of tokens from filtered logits."""
