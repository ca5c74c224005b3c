"""The registry of the actions of the seeded random user, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.person.person import Person

# A function that performs one action of the random user in the window. It returns False if the
# action was impossible or had no effect, and raises AssertionError if the effect is wrong.
Kind: TypeAlias = Callable[[Person], bool]

KINDS: dict[str, Kind] = {}


def kind(name: str) -> Callable[[Kind], Kind]:
    """Return a decorator that registers a function in KINDS as an action with this name."""

    def register(function: Kind) -> Kind:
        KINDS[name] = function
        return function

    return register
