"""Value types and Qt list models with the content that widgets show."""
