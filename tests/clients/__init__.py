"""Real coding agents against the server, with a scripted tiny model."""
