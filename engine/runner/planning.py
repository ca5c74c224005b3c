"""The plan of a request's prompt: made as its state is restored, or foreseen before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from engine.cache.disk.tier import Fetched
from engine.cache.holdings import Lease
from engine.cache.prefix_cache import PrefixCache
from engine.chat.prompt import Prompt
from engine.models.loader import LoadedModel
from engine.runner.ahead import Ahead
from engine.runner.explain import PrefixHit
from engine.runner.feeding import Feeder
from engine.runner.history import History
from engine.runner.plan import plan_prompt
from engine.types import ConversationId, Request
from engine.usage import PromptPlan


@dataclass(frozen=True, slots=True)
class Restorable:
    """The part of a prompt whose state a request would find, in memory or on disk."""

    restored: int  # number of leading tokens that would be restored
    matched: int  # number of leading tokens whose K/V is stored, at least `restored`
    on_disk: int  # number of the restored tokens whose state would be read from disk


class PromptPlanner:
    """Plans the prompts of one loaded model. Engine thread only."""

    def __init__(
        self, model: LoadedModel, cache: PrefixCache, feeder: Feeder, history: History
    ) -> None:
        self._model = model
        self._cache = cache
        self._feeder = feeder
        self._history = history

    def of_lease(
        self, request: Request, prompt: Prompt, lease: Lease, fetched: Fetched
    ) -> Callable[[int | None], PromptPlan]:
        """Return a function that plans a prompt up to the number of tokens that are fed.

        Args:
            request: the request that the prompt was built for.
            prompt: its prompt.
            lease: the caches, with the restored part of the prompt.
            fetched: what was read from disk for the request.
        """
        restored_ids = prompt.token_ids[: lease.restored]
        ahead = Ahead()
        if not request.side:
            ahead = self._feeder.ahead.take(request.conversation_id, restored_ids)
        state = Restorable(lease.restored, lease.matched, fetched.num_tokens)
        found = self._hit(request.conversation_id, state, ahead, lease.faulted)
        known = self._history.recall(request, prompt, model=self._model.facts.path)
        return partial(plan_prompt, request, prompt, found, known)

    def foresee(self, request: Request, prompt: Prompt, state: Restorable) -> PromptPlan:
        """Return the plan that a request would get if it began now. `state` is that of its prompt.

        The plan of the request differs only if the request finds a stored state to be wrong, or if
        reading from disk evicts a part of the prompt from memory.
        """
        restored_ids = prompt.token_ids[: state.restored]
        ahead = self._feeder.ahead.peek(request.conversation_id, restored_ids)
        known = self._history.recall(request, prompt, model=self._model.facts.path)
        return plan_prompt(request, prompt, self._hit(request.conversation_id, state, ahead), known)

    def restorable(self, conversation_id: ConversationId, token_ids: Sequence[int]) -> Restorable:
        """Return the part of a prompt that would be restored. Nothing is read or changed."""
        match = self._cache.match(conversation_id, token_ids)
        held = max(match.restored, self._cache.aside.reach(conversation_id, token_ids))
        disk = self._feeder.disk
        from_disk = 0 if disk is None else disk.restorable(conversation_id, token_ids)
        if from_disk <= held:
            return Restorable(held, max(held, match.matched), 0)
        return Restorable(from_disk, max(from_disk, match.matched), from_disk - held)

    def _hit(
        self, conversation_id: ConversationId, state: Restorable, ahead: Ahead, faulted: int = 0
    ) -> PrefixHit:
        return PrefixHit(
            restored=state.restored,
            matched=state.matched,
            on_disk=state.on_disk + ahead.num_on_disk,
            fed_ahead=ahead.num_fed,
            faulted=faulted,
            needs_points=self._model.layout.needs_snapshot,
            max_held=self._cache.max_held,
            was_deleted=self._history.was_deleted(conversation_id),
        )
