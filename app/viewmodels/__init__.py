"""The values and Qt list models that widgets show."""
