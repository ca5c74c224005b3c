"""One message: what a person wrote, or an answer."""
