"""An idle job that lets the model write a title of a conversation.

The title is a side request: it copies the cached beginning of its prompt to live caches of its own,
publishes nothing and evicts nothing. When it ends or is stopped, these caches are dropped, and the
prefix cache is as it was before. The text is greedy, without reasoning and short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from engine.cache import kv
from engine.cache.prefix_cache import PrefixCache
from engine.chat.prompt import Prompt
from engine.chat.reply_ids import forced_ids
from engine.cleanup import undo_on_error
from engine.errors import Failure
from engine.events import IdleKind, RequestFinished
from engine.models.loader import LoadedModel
from engine.questions import NextPrompt
from engine.runner.runner import Runner
from engine.runner.sequence import Sequence
from engine.types import (
    FinishReason,
    Message,
    ReplyTokens,
    Request,
    RequestId,
    Role,
    SamplingParams,
)

# Highest number of tokens of a title. A title of six words has 6 to 18.
MAX_TITLE_TOKENS = 24
# Highest number of tokens to feed before a title. Usually only the question for it is fed.
_MAX_READ = 1024


@dataclass(frozen=True, slots=True)
class TitleMaker:
    """The function that creates the titles of one loaded model."""

    runner: Runner
    model: LoadedModel
    cache: PrefixCache
    # Highest length of a prompt whose live caches may take memory beside the cache's budget, as
    # those of an audit do. A longer prompt must fit into what the budget leaves free.
    max_beside: int

    def __call__(self, task: NextPrompt, on_made: Callable[[str], None]) -> TitleJob | None:
        """Return a job that writes a title, or None if there is no memory or too much to read.

        Args:
            task: the conversation, and a user message that asks for a title.
            on_made: called with the title, which may be empty.

        Raises:
            TemplateError: the template refused the messages.
            ContextFullError, MemoryFullError: as in Runner.start.
        """
        for request in self._requests(task):
            prompt = self._build(request)
            if prompt.in_reasoning:
                # The template always opens a reasoning block. Begin the reply with the block's end.
                request = replace(request, messages=(*request.messages, self._end_of_reasoning()))
            token_ids = prompt.token_ids
            match = self.cache.match(task.conversation_id, token_ids)
            if len(token_ids) - match.restored <= _MAX_READ and self._has_memory(len(token_ids)):
                sequence = self.runner.start(request, 0.0)
                return None if sequence is None else TitleJob(self.runner, sequence, on_made)
        return None

    def _requests(self, task: NextPrompt) -> Iterator[Request]:
        """Yield the request without reasoning, then that with the conversation's own option.

        Some templates write the option into the system prompt. Without reasoning, the whole
        conversation would then be read again.
        """
        options = dict.fromkeys(
            (False, task.thinking) if self.model.facts.has_thinking else (None,)
        )
        for thinking in options:
            yield Request(
                request_id=RequestId("title"),
                conversation_id=task.conversation_id,
                messages=task.messages,
                new_messages=frozenset({len(task.messages) - 1}),
                sampling=SamplingParams(temperature=0.0),
                max_tokens=MAX_TITLE_TOKENS,
                thinking=thinking,
                keep_thinking=task.keep_thinking,
                tools=task.tools,
                side=True,
            )

    def _build(self, request: Request) -> Prompt:
        return self.model.prompts.build(
            request.messages,
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
            tools=request.tools,
        )

    def _end_of_reasoning(self) -> Message:
        prompts = self.model.prompts
        token_ids = forced_ids(prompts.tokenizer, "", "", in_reasoning=True)
        tokenizer_hash = prompts.tokenizer.tokenizer_hash
        end = ReplyTokens.of(token_ids, answer_start=len(token_ids), tokenizer_hash=tokenizer_hash)
        return Message(role=Role.ASSISTANT, content="", reply=end)

    def _has_memory(self, prompt_len: int) -> bool:
        layout = self.model.layout
        kv_bytes = kv.roomy(prompt_len + MAX_TITLE_TOKENS) * layout.kv_bytes_per_token
        needed = kv_bytes + layout.snapshot_bytes
        return prompt_len <= self.max_beside or needed <= self.cache.spare_bytes


class TitleJob:
    """A title that is being written. Each step feeds a chunk of the prompt or draws a token."""

    kind = IdleKind.TITLE

    def __init__(self, runner: Runner, sequence: Sequence, on_made: Callable[[str], None]) -> None:
        self._runner = runner
        self._on_made = on_made
        self._sequence = sequence
        self.conversation_id = sequence.request.conversation_id
        self.num_cached = sequence.prefill.start
        self.reads_pictures = sequence.prefill.reads_pictures
        num_read = sequence.prefill.end - self.num_cached
        self.total = num_read + MAX_TITLE_TOKENS  # a title may be shorter

    @property
    def done(self) -> int:
        return self._sequence.fed - self.num_cached

    def step(self) -> bool:
        """Run one forward pass. At the end of the title, report it and return False."""
        with undo_on_error(self.stop):
            if self._sequence.logits is None:
                self._runner.read(self._sequence)
                return True
            text = self._draw()
        if text is None:
            return True
        self._on_made(text)
        return False

    def stop(self) -> None:
        """Drop the title and its live caches."""
        self._runner.abandon(self._sequence)

    def _draw(self) -> str | None:
        """Draw a token. Return the whole text at the end of the title, else None.

        If the pass fails, the text is empty.
        """
        for _, result in self._runner.decode():
            if isinstance(result, Failure):
                self.stop()
                return ""
            if result and isinstance(result[-1], RequestFinished):
                self._runner.publish_turn(self._sequence)
                return _whole_lines(result[-1])
        return None


def _whole_lines(finished: RequestFinished) -> str:
    """Return the text without the line in which it was cut off."""
    if finished.reason is FinishReason.STOP:
        return finished.content
    return finished.content.rpartition("\n")[0]
