"""What an engine has processed and must not process again, kept apart from the engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from app.cli.processed import ProcessedTokens
from engine.types import Message, PromptPlan, Request


@dataclass(slots=True)
class Processed:
    """What was processed for one conversation, and not lost since for any known reason."""

    tokens: ProcessedTokens = field(default_factory=ProcessedTokens)
    prompts: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])  # read to the end
    questions: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])  # without tails
    forks: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])  # left once, read on
    read_ahead: set[object] = field(default_factory=set[object])  # next turns, see ahead_of


def ahead_of(messages: tuple[Message, ...], request: Request) -> object:
    """What a read-ahead of messages depends on."""
    return messages, request.thinking, request.keep_thinking


class Account:
    """All conversations' processed tokens. A token fed again after the same tokens is a redo."""

    def __init__(self) -> None:
        self._processed: dict[str, Processed] = {}
        self.num_strict = 0  # prompts of which not one token was allowed to be fed again

    def clear(self) -> None:
        """Anything may have been lost."""
        self._processed.clear()

    def forget(self, chat: str) -> None:
        """What only this conversation used is lost, nothing else."""
        self._processed.pop(chat, None)

    def of(self, chat: str) -> Processed:
        return self._processed.setdefault(chat, Processed())

    def known_len(self, prompt_ids: tuple[int, ...]) -> int:
        """How many of the prompt's first tokens were processed, in whichever conversation."""
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
        """Hold a prompt's plan to what was processed before it.

        Args:
            request: what was asked.
            plan: what the engine said that it restored.
            prompt_ids: the prompt.
            message_starts: where its messages' tokens begin, and the generation tail.
            is_fresh: the newest message begins like no other, so that nothing of its text is known.
        """
        known = self.known_len(prompt_ids)
        if any(prompt_ids in one.prompts for one in self._processed.values()):
            self.num_strict += 1
            assert plan.restored == plan.prompt_tokens, f"read again to answer again: {plan}"
            return
        if ahead_of(request.messages[:-1], request) in self.of(request.conversation_id).read_ahead:
            assert plan.replayed == 0, f"read ahead, and still replayed: {plan}"
        redo = max(0, known - plan.restored)
        # The message in which the prompt leaves what is known; the last entry is the tail.
        at = max(i for i, start in enumerate(message_starts) if start <= known)
        if is_fresh and at == len(message_starts) - 2 > 0:
            self.num_strict += 1
            assert redo == 0, f"{redo} tokens before {known} fed again: {plan}"
        elif redo:
            # Text that begins like an older one's is fed from the start of its message: once.
            assert prompt_ids[:known] not in self._forks(), f"fed again at {known} again: {plan}"
            # Text that was read as history alone has no point where its reply began.
            within = (
                message_starts
                if self._was_asked(prompt_ids[: message_starts[-1]])
                else message_starts[:-1]
            )
            began = max(start for start in within if start < known)
            assert plan.restored >= began, f"{known}, and {began} was within reach: {plan}"
            own = self.of(request.conversation_id).tokens.known_len(prompt_ids)
            is_old = at not in {0, *request.new_messages, len(message_starts) - 1}
            assert not is_old or own < known, f"{known} is in an old message: {plan}"

    def add(self, chat: str, token_ids: Iterable[int]) -> None:
        """Tokens that were processed one after the other."""
        self.of(chat).tokens.add(token_ids)

    def add_prompt(self, chat: str, prompt_ids: tuple[int, ...], *, fork: int, tail: int) -> None:
        """A prompt that was read to its end.

        Args:
            chat: whose it was.
            prompt_ids: the prompt.
            fork: how many of its tokens were known, or found, when it started.
            tail: where its generation tail begins.
        """
        self.of(chat).forks.add(prompt_ids[:fork])
        self.of(chat).questions.add(prompt_ids[:tail])
        self.of(chat).prompts.add(prompt_ids)

    def _was_asked(self, question: tuple[int, ...]) -> bool:
        """Whether a prompt that ended with this message was read."""
        return any(question in one.questions for one in self._processed.values())

    def _forks(self) -> set[tuple[int, ...]]:
        return {fork for one in self._processed.values() for fork in one.forks}
