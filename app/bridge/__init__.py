"""Engine and store on one side, Qt signals on the other."""
