"""The checks of a bundle: functions that yield a sentence for each problem."""
