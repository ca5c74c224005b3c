"""Conversations for the real Qwen tokenizers and templates, and the tokens that each turn may feed.

Questions, thoughts and answers are composed of sentences, code, lists, numbers and several scripts.
Replies are forced, so that a seed gives the same conversation on every engine. Each turn states
how many tokens it must read; `tally` compares this number with the engine's reports.
"""

# The texts need several scripts, so letters that look like Latin ones are allowed.
# ruff: noqa: RUF001

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.chat.prompt_builder import PromptBuilder
from engine.types import Message, Role

_PIECES = [
    "The harbour opens at six, but the ferry to the island leaves only when the tide allows it.",
    "Could you compare the two offers? One costs 1,249.90 € a year, the other 3 x 459.50 $.",
    "No: 17 * 23 = 391, because 17 * 20 = 340 and 17 * 3 = 51.",
    "```python\ndef mean(values: list[float]) -> float:\n    if not values:\n        raise ValueError('empty')\n    return sum(values) / len(values)\n```",
    "- flour, 500 g\n- two eggs\n- a pinch of salt\n- milk (about 250 ml)",
    "1. Open the lid.\n2. Wait for the click.\n   - If there is none, start again.\n3. Pull slowly.",
    "| city | °C | wind |\n|---|---:|---|\n| Oslo | -3.5 | NW 4 |\n| Rome | 14 | calm |",
    "Die Straßenbahn hält übrigens nicht mehr am Königsplatz, sondern erst hinter der Brücke.",
    "L'été dernier, nous avons passé une semaine à Saint-Étienne ; c'était déjà très loin.",
    "¿Dónde está la estación? Creo que el tren sale a las 7:45, pero no estoy seguro.",
    "Погода завтра будет ясной, но к вечеру возможен небольшой дождь со снегом.",
    "明日の会議は午後三時からに変更されました。資料は事前に共有してください。",
    "这本书一共有三百二十页,我已经看完了前面的两章,觉得写得很清楚。",
    "오늘은 날씨가 좋아서 강가를 따라 한 시간쯤 걸었습니다.",
    "यह रास्ता बाज़ार से होकर पुराने किले तक जाता है।",
    "هذه الوثيقة تشرح كيفية إعداد الجهاز خطوة بخطوة.",
    "Η απόσταση είναι περίπου δώδεκα χιλιόμετρα με τα πόδια.",
    "Sehr gut! 👍🏽 The naïve café owner’s résumé says “fluent in Čeština”… 👩‍👩‍👧",
    "SELECT name, COUNT(*) AS n FROM orders WHERE year >= 2024 GROUP BY name ORDER BY n DESC;",
    "for (let i = 0; i < rows.length; i += 2) { total += rows[i]?.price ?? 0; } // every other",
    "The error says `KeyError: 'user_id'` at line 84; the key is called `userId` in that version.",
    "$ git log --oneline -n 3 && make test 2>&1 | tail -20",
    "If x² + y² = 25 and x = 3, then y = ±4. ∫₀¹ x dx = ½, and √2 ≈ 1.41421356.",
    'She said: "Nothing is settled yet," and left; nobody knew what to make of it.',
    "https://example.org/a/b?c=1&d=%20x#top has three parts: the host, the path, the query.",
    "To be honest, I am not certain. Two sources disagree: 8,848.86 m and 8,844.43 m.",
    "a\tb\tc\n1\t2\t3\n",
    "## Summary\n\n> The river rises in spring.\n\n**Bold**, *italic*, ~~gone~~ and `code`.",
    "Wait, that can't be right. Let me count again: Monday, Wednesday, Friday, that is three days.",
    "The user wants a short answer, so I should leave out the derivation and give only the result.",
]
_SYSTEM = "You are a careful assistant. Answer in the language of the question. Today is a Tuesday."


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """The thinking options that a conversation passes to its template."""

    thinking: bool | None = None
    keep_thinking: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The smallest and largest number of tokens in a thought, and in an answer."""

    thought: tuple[int, int] = (50, 300)
    answer: tuple[int, int] = (20, 200)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTurn:
    """One step of a conversation, and the number of tokens that it may feed."""

    step: Mapping[str, Any]
    is_first: bool
    reads: int  # number of tokens of the new message and the template text after it
    # Number of tokens of the previous answer. The engine replays this answer if the template drops
    # thoughts.
    stripped: int


class RealChats:
    """Conversations that are played round by round, each with its own thinking options."""

    def __init__(
        self, prompts: PromptBuilder, manners: Sequence[Manner], lengths: Lengths, seed: int
    ) -> None:
        self._prompts = prompts
        self._chats = {f"{chr(ord('A') + i)}": manner for i, manner in enumerate(manners)}
        self._lengths = lengths
        self._rng = random.Random(seed)
        # For each conversation: the number of tokens of its newest answer.
        self._stripped = dict.fromkeys(self._chats, 0)

    def systems(self) -> list[dict[str, Any]]:
        return [{"op": "system", "chat": chat, "text": _SYSTEM} for chat in self._chats]

    def round(self) -> list[RealTurn]:
        """Return the next turn of every conversation."""
        return [self._turn(chat, manner) for chat, manner in self._chats.items()]

    def _turn(self, chat: str, manner: Manner) -> RealTurn:
        empty = self._prompts.build(
            [Message(role=Role.USER, content="x")],
            thinking=manner.thinking,
            keep_thinking=manner.keep_thinking,
        )
        question = self._text(5, 120)
        answer = self._text(*self._lengths.answer)
        tail = self._prompts.tokenizer.decode(empty.token_ids[empty.message_starts[-1] :])
        thought = "" if "</think>" in tail else self._text(*self._lengths.thought)
        before, self._stripped[chat] = self._stripped[chat], self._num_tokens(answer)
        around = len(empty.token_ids) - empty.points[0].num_tokens - 1
        return RealTurn(
            step={
                "op": "send",
                "chat": chat,
                "text": question,
                "thinking": manner.thinking,
                "keep_thinking": manner.keep_thinking,
                "max_tokens": 1024,
                "reply": {"text": answer, "reasoning": thought},
            },
            is_first=not before,
            reads=self._num_tokens(question) + around,
            stripped=before,
        )

    def _text(self, least: int, most: int) -> str:
        """Join random pieces until the text is long enough. Cut it at a space to `most` tokens."""
        wanted = self._rng.randint(least, most)
        text = ""
        while self._num_tokens(text) < wanted:
            text += self._rng.choice(["", "\n\n", "\n", " "] if text else [""])
            text += self._rng.choice(_PIECES)
        words = text.split(" ")
        while self._num_tokens(" ".join(words)) > most and len(words) > 1:
            words.pop()
        return " ".join(words).strip()

    def _num_tokens(self, text: str) -> int:
        return len(self._prompts.tokenizer.encode_text(text)) if text else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RealChatsTally:
    """Counts of turns, and of the turns that met a limit. First turns are not counted."""

    num_turns: int
    # Number of turns that replayed nothing, and read only the new message and the template text
    # after it.
    num_exact: int
    num_within: int  # number of turns that replayed at most the previous answer
    stripped: int  # sum of RealTurn.stripped
    redo: int
    replayed: int
    read: int

    @property
    def is_exact(self) -> bool:
        return self.num_exact == self.num_turns

    @property
    def holds(self) -> bool:
        return self.num_within == self.num_turns and not self.redo


def tally(turns: Sequence[RealTurn], reports: Sequence[Mapping[str, Any]]) -> RealChatsTally:
    pairs = [(t, r) for t, r in zip(turns, reports, strict=True) if not t.is_first]
    return RealChatsTally(
        num_turns=len(pairs),
        num_exact=sum(r["replayed"] == 0 and r["read"] == t.reads for t, r in pairs),
        num_within=sum(r["replayed"] <= t.stripped for t, r in pairs),
        stripped=sum(t.stripped for t, _ in pairs),
        redo=sum(r["redo"] for _, r in pairs),
        replayed=sum(r["replayed"] for _, r in pairs),
        read=sum(r["read"] for _, r in pairs),
    )
