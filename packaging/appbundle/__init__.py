"""Makes and checks Rejoinder.app. Runs on Linux and macOS; needs nothing but Python's own library."""
