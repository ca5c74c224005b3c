"""Which request runs next; plain Python."""
