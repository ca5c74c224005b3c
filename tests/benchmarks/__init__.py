"""Benchmarks: ratios against a baseline in one run. Not collected by pytest."""
