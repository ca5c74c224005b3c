"""The chat-tree benchmark: one scenario for every engine, its measures, and our engine's driver."""
