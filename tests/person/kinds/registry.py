"""The registry of the seeded user's actions, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.person.person import Person

# A function that does one action of the user. It returns False if the action was not possible or
# changed nothing. It raises AssertionError if the effect is wrong.
Kind: TypeAlias = Callable[[Person], bool]

KINDS: dict[str, Kind] = {}


def kind(name: str) -> Callable[[Kind], Kind]:
    """Return a decorator that adds an action to KINDS under a name."""

    def register(function: Kind) -> Kind:
        KINDS[name] = function
        return function

    return register
