"""Test doubles, fixtures and sample data that several test packages share."""
