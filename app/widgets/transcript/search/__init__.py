"""Find text in the transcript."""
