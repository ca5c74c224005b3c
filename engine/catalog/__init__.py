"""The model folders on this machine, read without loading them."""
