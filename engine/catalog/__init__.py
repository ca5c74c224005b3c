"""Find the model folders on this machine and describe them without loading a model."""
