"""The window with the branch map of a chat, and the window that compares two of its branches."""
