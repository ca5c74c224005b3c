"""Drafts for speculative decoding: where they come from, and how many are worth a pass. Pure Python."""
