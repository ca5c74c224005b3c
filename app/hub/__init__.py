"""Search and download of models on the Hugging Face Hub. No Qt. Only program.py opens connections."""
