"""Benchmarks. Most figures are ratios to a baseline of the same run. Not collected by pytest."""
