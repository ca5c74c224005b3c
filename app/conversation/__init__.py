"""The message tree and which messages an action sends; pure values."""
