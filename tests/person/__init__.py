"""A seeded person at the real window on the real engine: what they do, and what must hold then."""
