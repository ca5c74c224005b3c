"""Stand-ins that tests use: small, honest, deterministic."""
