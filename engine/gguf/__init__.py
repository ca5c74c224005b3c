"""GGUF files to model folders."""
