"""Typed reading of JSON from clients. Each field is checked, and an error names it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import cast

from app.server.errors import ErrorKind, ServerError, invalid
from app.words import server as words

# Most levels of lists and objects. Python's own reader would fail at about 1,000.
_MAX_DEPTH = 200
# Most brackets that open a list or an object. 20 million empty lists, in 40 MB, took 2 GB of memory
# and stopped all threads of the process for 13 s. Brackets within texts count too: as many are far
# more tokens than a model can read.
_MAX_BRACKETS = 500_000


class Fields:
    """A JSON object, whose fields are read one by one.

    Reading a field raises ServerError if its value is of a wrong type. A null is a missing field.
    """

    def __init__(self, values: dict[str, object], path: str = "") -> None:
        self._values = values
        self._path = path
        self._used: set[str] = set()
        self._sections: dict[str, Fields] = {}

    @property
    def unused(self) -> tuple[str, ...]:
        """Paths of the fields, also those of read sections, that have a value and were not read."""
        own = (k for k, v in self._values.items() if k not in self._used and v is not None)
        of_sections = (path for section in self._sections.values() for path in section.unused)
        return (*map(self.path_of, own), *of_sections)

    def path_of(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def raw(self, name: str) -> object:
        self._used.add(name)
        return self._values.get(name)

    def _wrong(self, name: str, wanted: str) -> ServerError:
        return _wrong_field(self.path_of(name), wanted)

    def text(self, name: str, default: str = "") -> str:
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self._wrong(name, words.A_TEXT)
        return _clean(value)

    def flag(self, name: str) -> bool | None:
        value = self.raw(name)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong(name, words.A_FLAG)

    def number(self, name: str, least: float, most: float) -> float | None:
        value = self.raw(name)
        if value is None:
            return None
        number = value if isinstance(value, (int, float)) else math.nan
        if isinstance(value, bool) or not least <= number <= most:
            wanted = words.a_number(f"{least:g}", f"{most:g}")
            raise self._wrong(name, wanted)
        return number

    def integer(self, name: str, least: int, most: int) -> int | None:
        value = self.raw(name)
        if value is None:
            return None
        number = value if isinstance(value, (int, float)) else math.nan
        if isinstance(value, bool) or not least <= number <= most or number != int(number):
            wanted = words.a_whole_number(least, most)
            raise self._wrong(name, wanted)
        return int(number)

    def section(self, name: str) -> Fields | None:
        value = self.raw(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(name, words.AN_OBJECT)
        fields = Fields(cast("dict[str, object]", value), self.path_of(name))
        return self._sections.setdefault(name, fields)

    def sections(self, name: str) -> Iterator[Fields]:
        """Yield the objects of a list."""
        value = self.raw(name)
        if value is None:
            return
        path = self.path_of(name)
        if not isinstance(value, list):
            raise self._wrong(name, words.A_LIST)
        for index, item in enumerate(cast("list[object]", value)):
            if not isinstance(item, dict):
                raise _wrong_field(f"{path}[{index}]", words.AN_OBJECT)
            yield Fields(cast("dict[str, object]", item), f"{path}[{index}]")

    def texts(self, name: str, most: int) -> tuple[str, ...]:
        """Return a list of texts, which may be a single text."""
        value = self.raw(name)
        if value is None:
            return ()
        items = cast("list[object]", value) if isinstance(value, list) else [value]
        if len(items) > most or not all(isinstance(item, str) and item for item in items):
            wanted = words.few_texts(most)
            raise self._wrong(name, wanted)
        return tuple(_clean(cast("str", item)) for item in items)


def _wrong_field(path: str, wanted: str) -> ServerError:
    return invalid(words.wrong_field(path, wanted), path)


def parse_body(body: bytes | bytearray) -> Fields:
    """Read the body of a request.

    Raises:
        ServerError: it is no JSON object, nested too deeply, or has too many lists and objects.
    """
    if body.count(b"[") + body.count(b"{") > _MAX_BRACKETS:
        raise ServerError(ErrorKind.TOO_LARGE, words.too_many_brackets(_MAX_BRACKETS))
    try:
        value = cast("object", json.loads(body))
    except RecursionError:
        raise invalid(words.TOO_DEEP) from None
    except ValueError:
        raise invalid(words.NO_JSON) from None
    if not isinstance(value, dict):
        raise invalid(words.NO_JSON)
    if _depth(cast("object", value)) > _MAX_DEPTH:
        raise invalid(words.TOO_DEEP)
    return Fields(cast("dict[str, object]", value))


def as_json(value: object) -> str:
    """Return a value as JSON that any later reader can read: no lone surrogates, no NaN."""
    return _clean(json.dumps(value, ensure_ascii=False))


def _clean(text: str) -> str:
    """Replace halves of characters, which cannot be encoded."""
    return text.encode("utf-8", "replace").decode()


def _depth(value: object) -> int:
    """Return the number of nested lists and objects, counted up to _MAX_DEPTH + 1."""
    level, depth = [value], -1
    while level and depth <= _MAX_DEPTH:
        level = [child for parent in level for child in _children(parent)]
        depth += 1
    return depth


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()
