"""The chat-tree benchmark: a scenario for any engine, its measurement, and our engine's driver."""
