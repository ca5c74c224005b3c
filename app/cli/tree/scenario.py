"""The chat-tree scenario: the steps of a user in two chats with many branches, with all texts.

The steps are: eight turns; edits of turns 7, 5, 3 and 1; a new turn on the original branch; a new
turn on the branch of the edited turn 5; a second edit of turn 5; another version of an old reply;
the first turn of a second chat with the same system prompt; a turn without thinking; a stopped
reply; a turn with thinking; one more turn in each chat. Every step requests one reply. Standard
library only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

# Length at which the user stops a reply: in tokens for our engine, in stream chunks for a server.
STOP_AFTER = 12
# Token limit for a reply that the engine writes itself (Replies.OWN).
OWN_REPLY_TOKENS = 48


class Replies(StrEnum):
    """The possible sources of the replies in the chat history."""

    SCRIPTED = "scripted"  # fixed text, which is the same for every engine
    OWN = "own"  # text that the engine generates


class TreeAction(StrEnum):
    """The user's actions that request a reply."""

    SEND = "send"
    EDIT = "edit"
    REGENERATE = "regenerate"


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply with a fixed text from the scenario."""

    text: str
    reasoning: str

    @property
    def stopped(self) -> str:
        """The first third of the text: the part that the chat keeps of a stopped reply."""
        words = self.text.split()
        return " ".join(words[: len(words) // 3])


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeStep:
    """One step of the scenario, which requests one reply."""

    name: str  # unique in the scenario
    chat: str
    action: TreeAction
    after: str | None  # name of the step just before this one in the chat; None for the first turn
    # For EDIT and REGENERATE: name of the step that has the original message or reply.
    target: str = ""
    user: str  # text of the user's message
    reply: Reply
    thinking: bool = True
    stops: bool = False  # True if the user stops the reply after STOP_AFTER tokens


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message in the format of OpenAI's chat protocol."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """The steps of one benchmark run, in order. All chats have the same system prompt."""

    system: str
    steps: tuple[TreeStep, ...]

    def history(self, step: TreeStep) -> tuple[TreeStep, ...]:
        """Return the earlier steps whose messages are part of the prompt of `step`."""
        if step.after is None:
            return ()
        before = next(other for other in self.steps if other.name == step.after)
        return (*self.history(before), before)

    def messages(self, step: TreeStep, replies: Mapping[str, str]) -> tuple[ChatMessage, ...]:
        """Return the prompt of a step. `replies` has the text of earlier replies, by step name."""
        messages = [ChatMessage("system", self.system)]
        for turn in self.history(step):
            messages.append(ChatMessage("user", turn.user))
            messages.append(ChatMessage("assistant", replies[turn.name]))
        return (*messages, ChatMessage("user", step.user))


def chat_tree(run: str, *, turns: int = 8, size: float = 1.0) -> Scenario:
    """Build the scenario.

    The system prompt begins with `run`. A run with another value therefore cannot reuse prompt
    tokens that a server cached for an earlier run. The length of all texts is proportional to
    `size`; with size 1 and a large vocabulary the system prompt has about 1,000 tokens. Only tests
    use fewer than 8 turns.
    """
    texts = _Texts(random.Random(11), size)  # noqa: S311 - not for secrets
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
    """A generator of plain sentences. The seed of the random numbers decides the sentences."""

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
        """Return sentences with at least `count` * size words in all."""
        sentences: list[str] = []
        while sum(len(sentence.split()) for sentence in sentences) < count * self._size:
            sentences.append(self._sentence())
        return " ".join(sentences)

    def question(self) -> str:
        """Return a user message. Each message begins with a different letter.

        An edited message therefore shares no prefix with the original. The scenario does not
        measure edits that keep the beginning of a message.
        """
        number = chr(ord("A") + self._num_questions)
        self._num_questions += 1
        return f"{number}: {self.words(20)} What does the log say about it?"

    def reply(self) -> Reply:
        text, reasoning = (self.words(self._number(low, 2 * low)) for low in (40, 50))
        return Reply(text, reasoning)

    def _sentence(self) -> str:
        parts = (self._WHO, self._DOES, self._WHAT, self._WHEN)
        return f"{' '.join(map(self._choose, parts))}, at {self._number(1, 12)} o'clock."
