"""Texts of bodies: halves of characters, which cannot be encoded, never get into the app."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.server.fields import Fields, as_json

# JSON can write half of a character by itself.
HALF = "\ud83d"


READERS: list[Callable[[Fields], str]] = [
    lambda fields: fields.text("text"),
    lambda fields: "".join(fields.texts("text", most=1)),
    lambda fields: "".join(fields.texts("list", most=1)),
    lambda fields: as_json(fields.raw("list")),
    lambda fields: as_json({fields.text("text"): fields.raw("text")}),
]


@pytest.mark.parametrize("read", READERS)
def test_half_of_a_character_is_replaced(read: Callable[[Fields], str]) -> None:
    text = read(Fields({"text": f"a{HALF}b", "list": [f"a{HALF}b"]}))

    assert "a?b" in text
