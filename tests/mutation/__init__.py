"""Mutation tests: break one expression at a time and check that a test fails.

    python -m tests.mutation [--only NAME ...] [--jobs N]

A mutation is caught if a test fails. If all tests pass, the mutation survives: no test covers its
expression. Mutations are chosen where a fault would harm users most. Each is named by what it breaks.
"""

from __future__ import annotations
