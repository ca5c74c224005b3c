"""The content, the rows and the layout of each message in the transcript."""
