"""The transcript for screen readers."""
