"""The checks of a bundle. A check is a function that yields one sentence for each problem."""
