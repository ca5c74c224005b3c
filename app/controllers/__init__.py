"""Controllers: they carry out the user's actions and keep the state behind the window. Main thread."""
