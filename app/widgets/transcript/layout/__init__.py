"""Geometry of the transcript: heights, scroll position, idle layout work, selection."""
