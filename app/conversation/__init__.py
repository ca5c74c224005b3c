"""The message tree of a conversation, and plans for the user's actions on it. Pure values."""
