"""Keep an answer to a format: tokens that may follow in a schema's JSON or tool calls. No mlx."""
