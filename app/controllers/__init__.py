"""Controllers: they carry out the user's actions and hold the window's state. Main thread."""
