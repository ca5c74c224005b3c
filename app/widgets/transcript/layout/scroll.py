"""Rules for automatic scrolling while an answer is streamed. No Qt.

Text is streamed faster than users read. So the view follows a new answer only until the answer's
first line reaches the top of the view, and then stops. If the user jumps or scrolls to the end, the
view keeps the end visible until the user scrolls up. Scrolling up always stops automatic scrolling.
"""

from __future__ import annotations

from enum import Enum, auto

NEAR_END = 24  # pixels; a view this close to the end counts as being at the end


class Follow(Enum):
    """The part of the transcript that automatic scrolling keeps in view."""

    NOTHING = auto()  # the visible text stays in place
    ANSWER = auto()  # the end, but only until the answer's first line reaches the top of the view
    END = auto()


class ScrollFollower:
    """Decides to which position the view scrolls after heights have changed."""

    def __init__(self) -> None:
        self.mode = Follow.ANSWER

    def wanted(self, *, current: int, end: int, answer_top: int | None) -> int | None:
        """Return the scroll value to go to, or None to keep the visible text in place.

        Args:
            current: The current scroll value.
            end: The maximum scroll value.
            answer_top: The scroll value that puts the first line of the streaming answer at the top
                of the view, or None if no answer is streamed.
        """
        if self.mode is Follow.NOTHING:
            return None
        if self.mode is Follow.END or answer_top is None:
            return end
        return min(end, max(current, answer_top))

    def scrolled(self, before: int, after: int, end: int) -> None:
        """Stop following after a scroll upwards. Follow the end after a scroll to the end."""
        if after < before:
            self.mode = Follow.NOTHING
        elif after >= end - NEAR_END:
            self.mode = Follow.END

    def released(self) -> None:
        """Stop automatic scrolling."""
        self.mode = Follow.NOTHING

    def jumped(self) -> None:
        """Follow the end, because the user jumped to the end."""
        self.mode = Follow.END

    def sent(self) -> None:
        """Follow the answer to a sent message until its first line is at the top of the view."""
        self.mode = Follow.ANSWER

    def settled(self, *, current: int, end: int, answer_top: int | None) -> None:
        """Stop following the answer as soon as it is higher than the view. Call after each layout.

        Without this call, the view would jump to the end of such an answer when the answer is
        complete.
        """
        outgrown = answer_top is not None and current < end - NEAR_END
        if self.mode is Follow.ANSWER and outgrown:
            self.mode = Follow.NOTHING
