"""The transcript held to what others say is right: Markdown's examples, long answers, pictures."""
