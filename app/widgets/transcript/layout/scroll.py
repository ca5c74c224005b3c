"""When the transcript follows its end. Pure.

A reader starts at the first line, and text is written faster than it is read: so the view follows
an answer until its first line reaches the top, and then stands still. Who jumps to the end, or
scrolls there, wants to watch: then it follows to the end of that answer. Any scrolling upwards
lets go.
"""

from __future__ import annotations

from enum import Enum, auto

NEAR_END = 24  # pixels


class Follow(Enum):
    """What the view keeps in sight while content grows."""

    NOTHING = auto()
    ANSWER = auto()  # the end, as long as the answer's first line stays visible
    END = auto()


class Follower:
    """Decides where to scroll when content changes."""

    def __init__(self) -> None:
        self.mode = Follow.ANSWER

    def wanted(self, *, current: int, end: int, answer_top: int | None) -> int | None:
        """Return the scroll value to go to, None to stay where the reader is.

        end is the greatest scroll value; answer_top the value that puts the first line of the
        answer being written at the top, None if none is.
        """
        if self.mode is Follow.NOTHING:
            return None
        if self.mode is Follow.END or answer_top is None:
            return end
        return min(end, max(current, answer_top))

    def scrolled(self, before: int, after: int, end: int) -> None:
        """The reader has scrolled."""
        if after < before:
            self.mode = Follow.NOTHING
        elif after >= end - NEAR_END:
            self.mode = Follow.END

    def released(self) -> None:
        """The reader wants this place to stay."""
        self.mode = Follow.NOTHING

    def jumped(self) -> None:
        """The reader asked for the end."""
        self.mode = Follow.END

    def sent(self) -> None:
        """A message was sent: its answer will be read from its first line."""
        self.mode = Follow.ANSWER

    def settled(self, *, current: int, end: int, answer_top: int | None) -> None:
        """All that is visible is in place: an answer that has outgrown the view is let go.

        It may end later, and nothing may move because of that.
        """
        outgrown = answer_top is not None and current < end - NEAR_END
        if self.mode is Follow.ANSWER and outgrown:
            self.mode = Follow.NOTHING
