"""The prefix cache: what is kept of processed tokens, where, and for how long."""
