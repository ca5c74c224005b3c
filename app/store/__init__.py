"""The store of conversations and presets: an SQLite database in the data folder."""
