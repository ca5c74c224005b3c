"""The steps and checks of building Rejoinder.app, on Linux and on macOS."""
