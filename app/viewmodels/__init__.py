"""What widgets show, as values and models."""
