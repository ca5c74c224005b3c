"""A reason why tokens were fed, and its sentence. explain.py finds the reason. No mlx."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.usage import ReasonKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """A reason without its number of tokens. The kind decides which other fields are set.

    After explain() has counted the tokens, it makes a Reason of this object. Messages count from 1,
    as the user sees them. Message 0 is the system prompt.
    """

    kind: ReasonKind
    is_again: bool = False  # True if the tokens had been fed before; set by _Case.why()
    message: int | None = None  # number of the message that the sentence names, if it names one
    last_message: int | None = None  # for NEW_MESSAGE: the last of several new messages
    place: int = 0  # token position of the change, or of the lost state
    num_dropped: int = 0  # number of reasoning tokens that the template dropped

    def joined(self, following: Why) -> Why | None:
        """Return one reason for this range and the range that follows; None for two reasons."""
        if following == self:
            return self
        kinds = {self.kind, following.kind}
        if kinds == {ReasonKind.NEW_MESSAGE} and self.is_again == following.is_again:
            return replace(self, last_message=following.last_message or following.message)
        return None


def sentence(why: Why, num_tokens: int) -> str:
    """Return the sentence that shows a reason to the user. explain() stores it in Reason.text."""
    subject = f"Message {why.message}" if why.message else "The system prompt"
    news = f"{subject} is new"
    if why.last_message:
        first = f"Messages {why.message}" if why.message else "The system prompt and the messages"
        news = f"{first} to {why.last_message} are new"
    return _SENTENCES[why.kind].format(
        count=_count(num_tokens, "token"),
        subject=subject,
        news=news,
        message=f"message {why.message}" if why.message else "the system prompt",
        place=f"{why.place:,}",
        dropped=_count(why.num_dropped, "reasoning token"),
        again=" again" if why.is_again else "",
    )


def _count(number: int, thing: str) -> str:
    return f"1 {thing}" if number == 1 else f"{number:,} {thing}s"


_SENTENCES = {
    ReasonKind.NEW_CONVERSATION: "These messages are read for the first time: {count}.",
    ReasonKind.NEW_MESSAGE: "{news}: {count}.",
    ReasonKind.NOT_KEPT: ("The state of earlier messages was not kept: {count} read again."),
    ReasonKind.INTERRUPTED: (
        "An answer was cut off before its state was saved: {count} read again."
    ),
    ReasonKind.MODEL_CHANGED: "Another model had read these messages: {count} read again.",
    ReasonKind.EDITED_MESSAGE: "{subject} changed at token {place}: {count} read{again}.",
    ReasonKind.ADDED_TEXT: "Text was added to {message}: {count} read{again}.",
    ReasonKind.SYSTEM_CHANGED: "The system prompt changed at token {place}: {count} read{again}.",
    ReasonKind.OPTIONS_CHANGED: (
        "The thinking options changed the prompt at token {place}: {count} read{again}."
    ),
    ReasonKind.TOOLS_CHANGED: (
        "The list of tools changed the prompt at token {place}: {count} read{again}."
    ),
    ReasonKind.REASONING_DROPPED: (
        "The template dropped {dropped}, so the answer after them was read again: {count}."
    ),
    ReasonKind.REPLY_RENDERED: (
        "The template writes {message} differently than before: {count} read{again}."
    ),
    ReasonKind.SNAPSHOT_EVICTED: (
        "The saved state at token {place} had to make room: {count} read again."
    ),
    ReasonKind.STATE_EVICTED: (
        "What was saved after token {place} had to make room: {count} read again."
    ),
    ReasonKind.CHAT_TOO_LARGE: (
        "This chat is larger than the memory for chats: {count} read again. A shorter chat, 8-bit "
        "or 4-bit chat memory in the model’s defaults, or a smaller model helps."
    ),
    ReasonKind.MODEL_RELOADED: "The model was loaded again: {count} read again.",
    ReasonKind.PROMPT_END: "The end of the prompt was read to begin the answer: {count}.",
    ReasonKind.FAULT: (
        "A saved state was not what it should be and was dropped: {count} read again."
    ),
}
