"""Controllers: carry out the user's actions and hold the state behind the window. Main thread."""
