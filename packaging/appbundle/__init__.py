"""The code that builds and checks Rejoinder.app. It runs on Linux and on macOS."""
