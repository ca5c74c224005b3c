"""Following: when the transcript scrolls by itself while an answer is streamed. Pure.

Text is streamed faster than users read. So the view follows a new answer only until its first line
reaches the top, and then stands still. A user who jumps or scrolls to the end wants to watch: then
the view follows the end until the user scrolls up. Scrolling up always stops following.
"""

from __future__ import annotations

from enum import Enum, auto

NEAR_END = 24  # pixels; a view this close to the end counts as being at the end


class Follow(Enum):
    """The part of the transcript that the view follows."""

    NOTHING = auto()  # the visible text stays in place
    ANSWER = auto()  # the end, until the first line of the answer reaches the top
    END = auto()


class Follower:
    """The decision where to scroll when heights have changed."""

    def __init__(self) -> None:
        self.mode = Follow.ANSWER

    def wanted(self, *, current: int, end: int, answer_top: int | None) -> int | None:
        """Return the scroll value to go to, or None to keep the visible text in place.

        Args:
            current: The scroll value.
            end: The maximum scroll value.
            answer_top: The scroll value with the first line of the streaming answer at the top, or
                None if no answer is streamed.
        """
        if self.mode is Follow.NOTHING:
            return None
        if self.mode is Follow.END or answer_top is None:
            return end
        return min(end, max(current, answer_top))

    def scrolled(self, before: int, after: int, end: int) -> None:
        """Stop following after the user has scrolled up; follow the end once it is reached."""
        if after < before:
            self.mode = Follow.NOTHING
        elif after >= end - NEAR_END:
            self.mode = Follow.END

    def released(self) -> None:
        """Stop following."""
        self.mode = Follow.NOTHING

    def jumped(self) -> None:
        """Follow the end after a jump to it."""
        self.mode = Follow.END

    def sent(self) -> None:
        """Follow the answer to a message that was just sent, up to its first line."""
        self.mode = Follow.ANSWER

    def settled(self, *, current: int, end: int, answer_top: int | None) -> None:
        """Stop following an answer that is longer than the view; call after each layout.

        Otherwise the view would jump to the end when the answer finishes.
        """
        outgrown = answer_top is not None and current < end - NEAR_END
        if self.mode is Follow.ANSWER and outgrown:
            self.mode = Follow.NOTHING
