"""Conversations to token ids and back; knows no arrays."""
