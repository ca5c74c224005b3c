"""Conversations on disk (SQLite)."""
