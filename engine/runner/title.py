"""An idle job that lets the model write a title of a conversation.

The title is the answer to a side request (side_job.py). It is greedy, without reasoning and short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from typing_extensions import override

from engine.chat.reply_ids import forced_ids
from engine.errors import Failure
from engine.events import IdleKind, RequestFinished
from engine.questions import NextPrompt
from engine.runner.runner import Runner
from engine.runner.sequence import Sequence
from engine.runner.side_job import SideJob, SideMaker
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


class TitleMaker(SideMaker):
    """The function that creates the titles of one loaded model."""

    __slots__ = ()

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
            prompt = self.build(request)
            if prompt.in_reasoning:
                # The template always opens a reasoning block. Begin the reply with the block's end.
                request = replace(request, messages=(*request.messages, self._end_of_reasoning()))
            is_short = self.num_unread(request, prompt) <= _MAX_READ
            if is_short and self.has_memory(request, prompt):
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

    def _end_of_reasoning(self) -> Message:
        prompts = self.model.prompts
        token_ids = forced_ids(prompts.tokenizer, "", "", in_reasoning=True)
        tokenizer_hash = prompts.tokenizer.tokenizer_hash
        end = ReplyTokens.of(token_ids, answer_start=len(token_ids), tokenizer_hash=tokenizer_hash)
        return Message(role=Role.ASSISTANT, content="", reply=end)


class TitleJob(SideJob):
    """A title that is being written."""

    kind = IdleKind.TITLE

    def __init__(self, runner: Runner, sequence: Sequence, on_made: Callable[[str], None]) -> None:
        super().__init__(runner, sequence)
        self._on_made = on_made

    @override
    def _note_finished(self, finished: RequestFinished) -> None:
        self._on_made(_whole_lines(finished))

    @override
    def _note_failed(self, failure: Failure) -> None:
        self._on_made("")


def _whole_lines(finished: RequestFinished) -> str:
    """Return the text without the line in which it was cut off."""
    if finished.reason is FinishReason.STOP:
        return finished.content
    return finished.content.rpartition("\n")[0]
