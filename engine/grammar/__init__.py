"""Keep an answer to a format: which tokens may follow in JSON of a schema and in tool calls. No mlx."""
