"""What a person does with a tree of chats, and the texts they read and write. Standard library only.

Eight turns; edits of turns 7, 5, 3 and 1; back to the original; on along a branch; the same message
edited again; an old reply regenerated; a second chat with the same system prompt; thinking switched
off; a reply stopped; on with thinking; from chat to chat. Every step asks for one reply.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

# A reply is stopped after so many tokens, or pieces of a stream.
STOP_AFTER = 12
# The length of a reply that an engine writes itself.
OWN_REPLY_TOKENS = 48


class Replies(StrEnum):
    """Who writes the replies in the history."""

    SCRIPTED = "scripted"  # the same text for every engine
    OWN = "own"  # the engine itself


class TreeAction(StrEnum):
    """What brings about a reply."""

    SEND = "send"
    EDIT = "edit"
    REGENERATE = "regenerate"


@dataclass(frozen=True, slots=True)
class Reply:
    """A scripted reply. Whoever stops it has read as far as `stopped`."""

    text: str
    reasoning: str

    @property
    def stopped(self) -> str:
        words = self.text.split()
        return " ".join(words[: len(words) // 3])


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeStep:
    """One reply that is asked for; name identifies it.

    after names the step whose reply the user's message follows, None for the first of a chat; target
    the step whose message is edited or whose reply is regenerated.
    """

    name: str
    chat: str
    action: TreeAction
    after: str | None
    target: str = ""
    user: str
    reply: Reply
    thinking: bool = True
    stops: bool = False


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message as OpenAI's protocol has it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """The steps in their order; all chats have the same system prompt."""

    system: str
    steps: tuple[TreeStep, ...]

    def history(self, step: TreeStep) -> tuple[TreeStep, ...]:
        """The steps whose user messages and replies come before the step's own message."""
        if step.after is None:
            return ()
        before = next(other for other in self.steps if other.name == step.after)
        return (*self.history(before), before)

    def messages(self, step: TreeStep, replies: Mapping[str, str]) -> tuple[ChatMessage, ...]:
        """The prompt of a step; replies holds the text that each step before it ended with."""
        messages = [ChatMessage("system", self.system)]
        for turn in self.history(step):
            messages.append(ChatMessage("user", turn.user))
            messages.append(ChatMessage("assistant", replies[turn.name]))
        return (*messages, ChatMessage("user", step.user))


def chat_tree(run: str, *, turns: int = 8, size: float = 1.0) -> Scenario:
    """The scenario.

    run begins the system prompt: a server that keeps its cache shares nothing between two runs. With
    size 1 the system prompt is about 1,000 tokens of a large vocabulary, and all texts grow with it.
    Fewer than 8 turns are for tests.
    """
    texts = _Texts(random.Random(11), size)  # noqa: S311 - texts, no secrets
    system = f"Run {run}. You answer questions about a small harbour. The log of the week: "
    return Scenario(system + texts.words(700), tuple(_steps(texts, turns)))


def _steps(texts: _Texts, turns: int) -> Iterator[TreeStep]:
    def send(name: str, after: str | None, chat: str = "A") -> TreeStep:
        return TreeStep(
            name=name,
            chat=chat,
            action=TreeAction.SEND,
            after=after,
            user=texts.question(),
            reply=texts.reply(),
        )

    def turn(number: int) -> str:
        return f"turn {number}"

    def edit(name: str, number: int) -> TreeStep:
        before = turn(number - 1) if number > 1 else None
        return replace(send(name, before), action=TreeAction.EDIT, target=turn(number))

    originals = [send(turn(n), turn(n - 1) if n > 1 else None) for n in range(1, turns + 1)]
    yield from originals
    edited = range(turns - 1, 0, -2)
    for number in edited:
        yield edit(f"edit {number}", number)
    yield send("original", turn(turns))
    yield send("branch", f"edit {edited[1]}")
    yield edit("edit again", edited[1])
    old = originals[turns - 3]
    yield replace(
        old, name="regenerate", action=TreeAction.REGENERATE, target=old.name, reply=texts.reply()
    )
    yield send("second chat", None, chat="B")
    yield replace(send("no thinking", "original"), thinking=False)
    yield replace(send("stop", "no thinking"), thinking=False, stops=True)
    yield send("go on", "stop")
    yield send("second again", "second chat", chat="B")
    yield send("first again", "go on")


class _Texts:
    """Plain sentences, the same for the same seed."""

    _WHO = ("The harbour master", "A fisher from the north", "The old pilot", "Our cook")
    _DOES = ("repaired", "counted", "sold", "painted", "carried away", "wrote down")
    _WHAT = ("two small boats", "the green nets", "a list of letters", "nine barrels of salt")
    _WHEN = ("before the rain", "at high water", "on the second day", "while the lamps were lit")

    def __init__(self, rng: random.Random, size: float) -> None:
        self._choose: Callable[[tuple[str, ...]], str] = rng.choice
        self._number = rng.randint
        self._size = size
        self._num_questions = 0

    def words(self, count: int) -> str:
        """At least count words, times the size."""
        sentences: list[str] = []
        while sum(len(sentence.split()) for sentence in sentences) < count * self._size:
            sentences.append(self._sentence())
        return " ".join(sentences)

    def question(self) -> str:
        """No two begin alike: an edit that keeps a message's beginning is another matter."""
        number = chr(ord("A") + self._num_questions)
        self._num_questions += 1
        return f"{number}: {self.words(20)} What does the log say about it?"

    def reply(self) -> Reply:
        text, reasoning = (self.words(self._number(low, 2 * low)) for low in (40, 50))
        return Reply(text, reasoning)

    def _sentence(self) -> str:
        parts = (self._WHO, self._DOES, self._WHAT, self._WHEN)
        return f"{' '.join(map(self._choose, parts))}, at {self._number(1, 12)} o'clock."
