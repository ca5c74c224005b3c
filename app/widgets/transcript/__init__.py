"""The painted transcript: its view, the messages in it, and the rows of each message."""
