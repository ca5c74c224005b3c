"""Find in the transcript."""
