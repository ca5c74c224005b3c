"""Model search and download on the Hugging Face Hub. No Qt. Only program.py opens connections."""
