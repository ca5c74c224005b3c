"""The commands that run in a terminal without a window. They use no Qt."""
