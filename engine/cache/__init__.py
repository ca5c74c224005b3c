"""K/V and recurrent state of processed tokens, kept in memory for later prompts."""
