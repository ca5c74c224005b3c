"""Drafts for speculative decoding: their sources, and how many are worth a pass. Pure Python."""
