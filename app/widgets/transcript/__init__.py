"""The painted transcript: rows, the messages that they make, and the view of all messages."""
