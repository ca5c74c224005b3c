"""Hostile requests to a real server process."""
