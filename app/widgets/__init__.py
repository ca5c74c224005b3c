"""The window's parts; one widget a file."""
