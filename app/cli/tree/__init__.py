"""The chat-tree benchmark: the scenario, the measurements, and a driver for our engine."""
