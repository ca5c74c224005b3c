"""Messages: content, rows and layout of each message, and the layouts of a conversation."""
