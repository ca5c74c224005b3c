"""The account of the tokens that an engine has processed, to find tokens that it feeds twice.

The redo of a prompt is the number of tokens that the engine feeds again. A token counts if the
engine has already processed it after the same preceding tokens, in a prompt or in an output. The
engine promises a redo of 0. The harness (harness.py) adds every prompt and every answer to an
`Account`. It lets the account judge each new prompt: the number of tokens that the engine restored
must agree with what the engine had processed. After an eviction the harness clears the account,
because evicted tokens may be fed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.cli.processed import ProcessedTokens
from engine.types import Message, Request
from engine.usage import PromptPlan


@dataclass(slots=True)
class Processed:
    """The token sequences that were processed for one conversation and not evicted since."""

    # All processed sequences, both prompts and outputs.
    tokens: ProcessedTokens = field(default_factory=ProcessedTokens)
    # Token ids of the prompts that were read to their end.
    prompts: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])
    # Token ids of the prompts in `prompts`, without their generation tails.
    questions: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])
    # One entry per prompt: the leading tokens that were processed or cached before its request.
    forks: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])
    # Keys (see ahead_of) of the prompts that idle work has read ahead.
    read_ahead: set[object] = field(default_factory=set[object])


def ahead_of(messages: tuple[Message, ...], request: Request) -> object:
    """Return the key of a read-ahead: the messages, and the options that change their tokens."""
    return messages, request.thinking, request.keep_thinking


class Account:
    """A record of the tokens that each conversation has processed.

    It says how many tokens of a new prompt an engine that keeps everything would not feed again.
    """

    def __init__(self) -> None:
        self._processed: dict[str, Processed] = {}
        self.num_strict = 0  # number of judged prompts whose redo had to be 0

    def clear(self) -> None:
        """Forget all processed tokens, because any cached state may have been evicted."""
        self._processed.clear()

    def forget(self, chat: str) -> None:
        """Forget the tokens of one conversation, because its cached state was dropped."""
        self._processed.pop(chat, None)

    def of(self, chat: str) -> Processed:
        return self._processed.setdefault(chat, Processed())

    def known_len(self, prompt_ids: tuple[int, ...]) -> int:
        """Return the length of the longest prompt prefix that one conversation has processed."""
        everyone = self._processed.values()
        return max((one.tokens.known_len(prompt_ids) for one in everyone), default=0)

    def judge(
        self,
        request: Request,
        plan: PromptPlan,
        prompt_ids: tuple[int, ...],
        message_starts: Sequence[int],
        *,
        is_fresh: bool,
    ) -> None:
        """Assert that the engine restored as much of a prompt as it promises.

        A prompt that was read to its end before must be restored whole. A known token is one that
        the engine has processed. If a prompt differs from earlier prompts only in its newest
        message, and `is_fresh` is True, no known token may be fed again. Otherwise the
        engine may feed known tokens again, once, but only from the first changed message on.

        Args:
            request: The request that the prompt was built for.
            plan: The engine's report of restored, replayed and read tokens.
            prompt_ids: The token ids of the prompt.
            message_starts: The index of each message's first token, then of the tail's first token.
            is_fresh: True if the newest message begins differently from every earlier message.
        """
        known = self.known_len(prompt_ids)
        if any(prompt_ids in one.prompts for one in self._processed.values()):
            self.num_strict += 1
            assert plan.restored == plan.prompt_tokens, (
                f"a known prompt is not restored whole: {plan}"
            )
            return
        if ahead_of(request.messages[:-1], request) in self.of(request.conversation_id).read_ahead:
            assert plan.replayed == 0, f"tokens are replayed after a read-ahead: {plan}"
        redo = max(0, known - plan.restored)
        # Index of the message that holds the first unknown token; the last index is the tail.
        at = max(i for i, start in enumerate(message_starts) if start <= known)
        if is_fresh and at == len(message_starts) - 2 > 0:
            self.num_strict += 1
            assert redo == 0, f"{redo} of {known} known tokens are fed again: {plan}"
        elif redo:
            # If a message begins like an earlier message, the engine may feed it from its start,
            # but only once. Afterwards there is a resume point at the first token that differs.
            assert prompt_ids[:known] not in self._forks(), f"second redo at token {known}: {plan}"
            # There is a resume point at the start of the tail only if an earlier prompt had the
            # same messages.
            within = (
                message_starts
                if self._was_asked(prompt_ids[: message_starts[-1]])
                else message_starts[:-1]
            )
            began = max(start for start in within if start < known)
            assert plan.restored >= began, f"redo from before the message start {began}: {plan}"
            own = self.of(request.conversation_id).tokens.known_len(prompt_ids)
            is_old = at not in {0, *request.new_messages, len(message_starts) - 1}
            assert not is_old or own < known, f"redo inside an old message, token {known}: {plan}"

    def add(self, chat: str, token_ids: Iterable[int]) -> None:
        """Add a sequence of tokens that was processed for a conversation."""
        self.of(chat).tokens.add(token_ids)

    def add_prompt(self, chat: str, prompt_ids: tuple[int, ...], *, fork: int, tail: int) -> None:
        """Add a prompt that was read to its end.

        Args:
            chat: The name of the conversation.
            prompt_ids: The token ids of the prompt.
            fork: The number of leading tokens that were processed or cached before the request.
            tail: The index of the first token of the generation tail.
        """
        self.of(chat).forks.add(prompt_ids[:fork])
        self.of(chat).questions.add(prompt_ids[:tail])
        self.of(chat).prompts.add(prompt_ids)

    def _was_asked(self, question: tuple[int, ...]) -> bool:
        """Return True if any prompt consisted of these tokens and a generation tail."""
        return any(question in one.questions for one in self._processed.values())

    def _forks(self) -> set[tuple[int, ...]]:
        return {fork for one in self._processed.values() for fork in one.forks}
