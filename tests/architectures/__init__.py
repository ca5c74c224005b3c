"""Every model type of the installed mlx-lm, tiny and random, held to what is promised of it."""
