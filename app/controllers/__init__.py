"""What the person's actions do."""
