"""Limits of a request: the model's context, and the memory of every stage."""

from __future__ import annotations

from collections.abc import Iterable

from engine.chat.prompt import Prompt
from engine.config import EngineConfig
from engine.errors import ContextFullError, TextTooLongError
from engine.memory import spare_bytes
from engine.models.loader import LoadedModel
from engine.picture_ids import picture_spans
from engine.questions import NextPrompt
from engine.runner.request_memory import RequestMemory
from engine.runner.sequence import room_for
from engine.types import Request, Role

# More tokens than the last word of a draft has with the template's text after it.
_DRAFT_END = 512


class Admission:
    """The limits of one loaded model. Engine thread only."""

    def __init__(self, model: LoadedModel, config: EngineConfig) -> None:
        self._model = model
        self._cell_len = config.cell_len
        # The memory of each stage. On one machine there is one.
        self._memories = [
            RequestMemory(
                model.abilities.layout, config, spare_bytes(config, model.own_weight_bytes)
            ),
            *(RequestMemory(stage.layout, config, stage.spare_bytes) for stage in model.others),
        ]

    def fits(self, prompt: Prompt, request: Request, beside: Iterable[int]) -> bool:
        """Return True if a request fits into memory beside the other requests.

        beside: for each other request, the number of tokens that it reserves K/V for.

        Raises:
            MemoryFullError: the request would not fit even alone.
        """
        prompt_len = len(prompt.token_ids)
        room = room_for(prompt_len, request)
        largest = max((one.end - one.start for one in picture_spans(prompt.token_ids)), default=0)
        vision = self._model.vision
        tower_bytes = vision.pass_bytes(largest) if vision is not None and largest else 0
        pass_len = max(min(prompt_len, self._cell_len), largest)
        # Rank 0 has the tower.
        needs = [(memory, 0) for memory in self._memories]
        needs[0] = (self._memories[0], tower_bytes)
        for memory, own_bytes in needs:
            memory.check_fits(pass_len, room, own_bytes)
        others = list(beside)
        return not others or all(
            memory.fits_beside(pass_len, room, others, own_bytes) for memory, own_bytes in needs
        )

    def check_context(self, prompt: Prompt, turn: Request | NextPrompt) -> None:
        """Raise an error if a prompt leaves no room for a reply in the model's context.

        Raises:
            ContextFullError: the conversation is too long.
            TextTooLongError: its newest message is too long, even without the earlier ones.
        """
        facts, needed = self._model.facts, len(prompt.token_ids)
        if needed < facts.context_len:
            return
        *earlier, newest = turn.messages
        lasting = [one for one in earlier if one.role is Role.SYSTEM]
        error = ContextFullError
        if newest.role is Role.USER:
            alone = self._model.prompts.build(
                (*lasting, newest),
                thinking=turn.thinking,
                keep_thinking=turn.keep_thinking,
                tools=turn.tools,
            )
            if len(alone.token_ids) >= facts.context_len:
                needed, error = len(alone.token_ids), TextTooLongError
        raise error(
            f"It needs {needed:,} tokens and {facts.title} reads at most {facts.context_len:,}.",
            needed,
        )

    def too_long(self, task: NextPrompt, known: Prompt) -> ContextFullError | None:
        """Return the error that a draft would have if it was sent now; None if its prompt fits.

        known: the prompt without the end of the draft.
        """
        prompt = known
        if len(known.token_ids) + _DRAFT_END < self._model.facts.context_len:
            return None
        if task.is_draft:
            prompt = self._model.prompts.build(
                task.messages,
                thinking=task.thinking,
                keep_thinking=task.keep_thinking,
                tools=task.tools,
            )
        try:
            self.check_context(prompt, task)
        except ContextFullError as error:
            return error
        return None

    def max_output(self, prompt: Prompt, request: Request) -> int:
        """Return the highest number of tokens that a request may add to a reply."""
        prompt_len = len(prompt.token_ids)
        limits = [
            request.max_tokens,
            self._model.facts.context_len - prompt_len,
            min(memory.max_tokens for memory in self._memories) - prompt_len,
        ]
        if request.stop_after is not None:
            limits.append(request.stop_after)
        return max(1, min(limits))
