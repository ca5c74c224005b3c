"""Controllers, which carry out the user's actions and store the window's state. Main thread."""
