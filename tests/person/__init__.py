"""A seeded random user of the real window on the real engine, and checks that no text is lost."""
