"""An idle job that writes the beginning of an answer that is not requested yet.

The preview is the answer to a side request (side_job.py). Each token is drawn from the same
arguments as in the request, so the request may continue the preview as its own reply. The state of
the newest preview is kept beside the prefix cache until then, so that the request reads neither the
edited message nor the preview again. A preview that is interrupted by its request is some tokens
ahead of the words on screen. So the recurrent states of its newest tokens are kept too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from typing_extensions import override

from engine.cache.points import PointKind
from engine.cache.snapshot import Snapshot, capture
from engine.chat.sentences import num_sentences
from engine.cleanup import undo_on_error
from engine.errors import Failure, PreviewRefusedError
from engine.events import Event, IdleKind, PreviewStage, RequestFinished
from engine.questions import Preview
from engine.runner.runner import Runner
from engine.runner.sequence import Sequence
from engine.runner.side_job import SideJob, SideMaker
from engine.types import FinishReason, Request

# Number of sentences after which a preview ends, and the highest number of its tokens.
_NUM_SENTENCES = 2
MAX_PREVIEW_TOKENS = 120
# Highest number of tokens to read for a preview. Usually only the edited message is read.
MAX_PREVIEW_READ = 2048
# Number of newest tokens whose recurrent states are kept while a preview is written
_NUM_RECENT = 4

OnProgress = Callable[[PreviewStage, int, Preview], None]


class PreviewMaker(SideMaker):
    """The function that creates the previews of one loaded model."""

    __slots__ = ()

    def __call__(
        self, request: Request, on_progress: OnProgress, on_made: Callable[[Preview], None]
    ) -> PreviewJob:
        """Return a job. See engine/idle_job.py.

        Raises:
            PreviewRefusedError: too much would have to be read, or there is no memory.
            TemplateError: the template refused the messages.
            ContextFullError, MemoryFullError: as in Runner.start.
        """
        # The request must have a token left to draw.
        max_tokens = max(1, min(MAX_PREVIEW_TOKENS, request.max_tokens - 1))
        request = replace(
            request, max_tokens=max_tokens, max_drafts=0, record_logits=False, side=True
        )
        prompt = self.build(request)
        num_unread = self.num_unread(request, prompt)
        if num_unread > MAX_PREVIEW_READ:
            raise PreviewRefusedError(f"{num_unread:,} tokens would have to be read.")
        sequence = None
        if self.has_memory(request, prompt, num_states=1 + _NUM_RECENT):
            sequence = self.runner.start(request, 0.0)
        if sequence is None:
            raise PreviewRefusedError("There is not enough memory beside the other chats.")
        sequence.lease.has_points = True
        return PreviewJob(self.runner, sequence, on_progress, on_made)


class PreviewJob(SideJob):
    """A preview that is being written."""

    kind = IdleKind.PREVIEW

    def __init__(
        self,
        runner: Runner,
        sequence: Sequence,
        on_progress: OnProgress,
        on_made: Callable[[Preview], None],
    ) -> None:
        super().__init__(runner, sequence)
        self._on_progress = on_progress
        self._on_made = on_made
        self._newest = Preview()  # the newest one that was reported
        self._recent = deque[Snapshot](maxlen=_NUM_RECENT)
        self._note_read(sequence.num_unread)

    @override
    def stop(self) -> None:
        """End the preview here, and keep its state for the request that continues it."""
        with undo_on_error(self._drop):
            self._runner.set_aside(self._sequence, self._recent)

    @override
    def _note_read(self, num_unread: int) -> None:
        if num_unread:
            self._on_progress(PreviewStage.READING, num_unread, Preview())

    @override
    def _until_end(self, events: list[Event]) -> list[Event]:
        if not events or isinstance(events[-1], RequestFinished):
            return events
        reply = self._sequence.reply
        if max(num_sentences(reply.reasoning), num_sentences(reply.content)) >= _NUM_SENTENCES:
            return self._runner.finish(self._sequence, FinishReason.CANCELLED)
        preview = Preview(content=reply.content, reasoning=reply.reasoning, reply=reply.tokens())
        self._newest = preview
        self._note_state()
        self._on_progress(PreviewStage.WRITING, 0, preview)
        return events

    def _note_state(self) -> None:
        """Keep the state of recurrent layers here, which needs no copy. Attention windows would."""
        hot = self._sequence.lease.hot
        if hot.leaves.aux and not any(leaf.writes_in_place for leaf in hot.leaves.aux):
            num_tokens = hot.num_tokens + self._sequence.is_ahead
            self._recent.append(capture(hot.leaves, num_tokens, PointKind.TAIL))

    @override
    def _note_finished(self, finished: RequestFinished) -> None:
        preview = Preview(
            content=finished.content,
            reasoning=finished.reasoning,
            reply=finished.reply,
            is_whole=finished.reason is FinishReason.STOP,
        )
        if not preview.is_whole and (preview.content or preview.reasoning).endswith("\ufffd"):
            # The tokens end within a character, which the answer will complete.
            preview = self._newest
        self._on_made(preview)

    @override
    def _note_failed(self, failure: Failure) -> None:
        self._on_made(Preview(refusal=failure.problem))
