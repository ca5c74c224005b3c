"""Mouse and keyboard input of the transcript."""
