"""The desktop app: conversations, their storage and the window."""
