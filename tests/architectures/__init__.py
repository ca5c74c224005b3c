"""Trials of every model type of the installed mlx-lm, each as a tiny model with random weights."""
