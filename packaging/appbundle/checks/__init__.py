"""What a bundle is checked for: functions that yield what is wrong, as sentences."""
