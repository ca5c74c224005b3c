"""Every text that the window shows: one module for each area of the window.

A text is a constant, or a function if it contains values.
"""
