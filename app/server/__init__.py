"""A local server: programs on this machine chat with the loaded model, through the same engine."""
