"""Checks of the transcript: Markdown specifications, long streamed answers, approved pictures."""
