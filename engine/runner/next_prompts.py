"""The prompts that may come next: read ahead while the engine is idle, or only counted."""

from __future__ import annotations

import logging
from functools import partial

from engine.cache.grafting import Graft
from engine.cache.points import PointKind
from engine.cache.prefix_cache import ANOTHER_TOKEN, PrefixCache
from engine.errors import ContextFullError
from engine.events import ReadAhead
from engine.models.loader import LoadedModel
from engine.questions import NextPrompt, TokensCounted
from engine.runner.admission import Admission
from engine.runner.feeding import Feeder
from engine.runner.history import History
from engine.runner.planning import PromptPlanner
from engine.runner.read_ahead import ReadAheadJob
from engine.types import Request, Role

log = logging.getLogger(__name__)


class NextPrompts:
    """Reads ahead and counts the next prompts of one loaded model. Engine thread only."""

    def __init__(
        self,
        model: LoadedModel,
        cache: PrefixCache,
        feeder: Feeder,
        admission: Admission,
        planner: PromptPlanner,
        history: History,
    ) -> None:
        self._model = model
        self._cache = cache
        self._feeder = feeder
        self._admission = admission
        self._planner = planner
        self._history = history

    def read_ahead(self, task: ReadAhead, *, displaces: bool) -> ReadAheadJob | None:
        """Return a job that feeds the known part of a conversation's next prompt.

        Args:
            task: the conversation and its messages.
            displaces: True if less valuable cached state may be evicted to make room.

        Returns:
            None if the known part is cached completely, if it does not fit into the budget or the
            context, or if the task is only to fetch state from disk.

        Raises:
            TemplateError: the template refused the messages.
        """
        prompt = self._feeder.known_prompt(task)
        name, token_ids = task.conversation_id, prompt.token_ids
        expected = (*token_ids, ANOTHER_TOKEN)
        self._history.note_prompt(name, len(token_ids))
        if len(token_ids) >= self._model.facts.context_len:
            return None
        has_room = displaces or self._cache.has_room(name, token_ids, 1, displaces=False)
        disk = self._feeder.disk
        if disk is not None and has_room:
            num_fetched = disk.fetch(name, expected).num_tokens
            restored = self._cache.match(name, expected).restored
            self._feeder.ahead.note_on_disk(name, token_ids[:restored], restored - num_fetched)
        match = self._cache.match(name, expected)
        is_whole = match.restored == len(token_ids)
        # An empty chat on show uses nothing, but the documents of a folder and chats with answers
        # do.
        is_used = task.displaces or any(one.role is Role.ASSISTANT for one in task.messages)
        if is_whole and is_used and match.node is not None and name not in match.node.users:
            # Another conversation has read these tokens, for example the one that was copied. They
            # stay if it is forgotten.
            self._cache.graft(name, Graft(match.run, (), None))
        if task.fetch_only or is_whole:
            return None
        chunks = self._feeder.chunks(prompt, match.restored, match.matched)
        num_points = sum(chunk.kind is not None for chunk in chunks)
        if not self._cache.has_room(name, token_ids, num_points, displaces=displaces):
            log.info("no room to read ahead for conversation %s", name)
            return None
        lease = self._cache.acquire(
            name, token_ids, self._model.adapter.new_caches, room=len(token_ids), side=False
        )
        publish = partial(self._feeder.publish, task, prompt, is_turn=False)
        return ReadAheadJob(task, self._cache, self._feeder.prefill(prompt, lease), publish)

    def count_tokens(self, task: NextPrompt | Request) -> TokensCounted:
        """Return the number of tokens in a prompt, and in the part of it that is cached.

        Of a NextPrompt, the known part is counted; after a reply, the part before a user message,
        because the app sends no tool results. State on disk counts as cached if a request would
        restore it. Nothing is changed.

        Raises:
            TemplateError: the template refused the messages.
            CannotContinueError: the reply cannot be continued.
        """
        if isinstance(task, Request):
            return self._count_request(task)
        prompt = self._feeder.known_prompt(task, before_user=True)
        token_ids = prompt.token_ids
        state = self._planner.restorable(task.conversation_id, (*token_ids, ANOTHER_TOKEN))
        error = self._admission.too_long(task, prompt)
        num_parts = len(task.messages[-1].part_ends)
        starts = [p.num_tokens for p in prompt.points if p.kind is not PointKind.STRIDE]
        return TokensCounted(
            num_tokens=len(token_ids),
            num_cached=state.restored,
            num_on_disk=state.on_disk,
            refusal=None if error is None else error.problem,
            part_ends=tuple(starts[-1 - num_parts :]) if num_parts else (),
        )

    def _count_request(self, request: Request) -> TokensCounted:
        prompt = self._model.prompts.build(
            request.messages,
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
            tools=request.tools,
        )
        state = self._planner.restorable(request.conversation_id, prompt.token_ids)
        plan = self._planner.foresee(request, prompt, state)
        refusal = None
        try:
            self._admission.check_context(prompt, request)
        except ContextFullError as error:
            refusal = error.problem
        return TokensCounted(
            num_tokens=plan.prompt_tokens,
            num_cached=plan.restored,
            num_on_disk=state.on_disk,  # the plan also counts what was read from disk already
            refusal=refusal,
            plan=plan,
        )
