"""The message tree of a conversation, and the messages that each user action sends. Pure values."""
