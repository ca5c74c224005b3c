"""The editor that replaces a user message in the transcript."""
