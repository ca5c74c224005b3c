"""The kinds of things a person does, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.person.person import Person

# Says whether there was anything to do; fails if that has not had its effect.
Kind: TypeAlias = Callable[[Person], bool]

KINDS: dict[str, Kind] = {}


def kind(name: str) -> Callable[[Kind], Kind]:
    def register(function: Kind) -> Kind:
        KINDS[name] = function
        return function

    return register
