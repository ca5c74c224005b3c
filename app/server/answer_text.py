"""The text of an answer as it arrives: tool calls taken out, and the end at a stop text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallText:
    """The text of a tool call between the markers of the model."""

    text: str
    whole: str  # the same with its markers


class CallSplitter:
    """Divides an answer into text and tool calls, at the markers of the model.

    A blank text before a call is left out, because it only separates.
    """

    def __init__(self, start: str = "", end: str = "") -> None:
        """Create a splitter.

        Args:
            start: the marker before a call. "": the model has no calls.
            end: the marker after a call. "": the call ends with the answer.
        """
        self._start, self._end = start, end
        self._held = ""  # text that may belong to a marker, or blanks that may precede a call
        self._is_call = False

    def add(self, text: str) -> list[str | CallText]:
        """Add text. Return what is certain now, in order."""
        self._held += text
        found: list[str | CallText] = []
        while self._start:
            if self._is_call:
                end = self._held.find(self._end) if self._end else -1
                if end < 0:
                    return found
                found.append(self._call(self._held[:end], self._end))
                self._held, self._is_call = self._held[end + len(self._end) :], False
            start = self._held.find(self._start)
            if start < 0:
                break
            found += filter(None, [self._held[:start].rstrip()])
            self._held, self._is_call = self._held[start + len(self._start) :], True
        certain = _certain_len(self._held, self._start)
        found += filter(None, [self._held[:certain]])
        self._held = self._held[certain:]
        return found

    def flush(self) -> list[str | CallText]:
        """Return the rest at the end of the answer. A call without its end marker is text."""
        held, self._held = self._held, ""
        if not self._is_call:
            return [held] if held else []
        self._is_call = False
        return [self._call(held, "")] if not self._end else [self._start + held]

    def _call(self, text: str, end: str) -> CallText:
        return CallText(text, self._start + text + end)


class StopTexts:
    """Ends an answer before the first of several texts."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._held = ""
        self.found: str | None = None  # the text that ended the answer

    def add(self, text: str) -> str:
        """Add text. Return the text that certainly precedes the end."""
        if self.found is not None:
            return ""
        self._held += text
        ends = [(at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if ends:
            end, self.found = min(ends)
            return self._held[:end]
        certain = min(
            (_begun_at(self._held, stop) for stop in self._stops), default=len(self._held)
        )
        shown, self._held = self._held[:certain], self._held[certain:]
        return shown

    def flush(self) -> str:
        """Return the rest at the end of the answer."""
        return self._held if self.found is None else ""


def _certain_len(text: str, marker: str) -> int:
    """Count the characters to show before a marker may begin, without blanks before it."""
    if not marker:
        return len(text)
    return len(text[: _begun_at(text, marker)].rstrip())


def _begun_at(text: str, marker: str) -> int:
    """Return the position at which the end of a text may be the beginning of a marker."""
    for start in range(max(0, len(text) - len(marker) + 1), len(text)):
        if marker.startswith(text[start:]):
            return start
    return len(text)
