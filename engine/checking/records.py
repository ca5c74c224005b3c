"""Records of finished requests: their tokens and the logits of each draw.

A Verify question compares a record with runs of the model that use no cached state. Engine thread
only.
"""

from __future__ import annotations

from collections import OrderedDict

import mlx.core as mx

from engine.chat.reply import ReplyStream
from engine.checking.oracle import LogitsRecord, check, failed_check
from engine.errors import Failure, attempt
from engine.models.loader import LoadedModel
from engine.questions import CheckResult, Verify
from engine.runner.drawing import TokensBefore, TokenSource, token_source
from engine.runner.sequence import Sequence
from engine.types import FinishReason, Request, RequestId

# Highest number of records kept. No client has more unverified requests at a time.
_MAX_RECORDS = 64


class RecordedTokens:
    """A token source that keeps the logits of each draw. Another token source does the drawing.

    If a token is drawn twice at the same index, the second logits replace the first. The last
    logits may belong to a token that is never delivered, because the engine computes one token in
    advance.
    """

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        # Logits of shape (V,), by index of the token in the reply.
        self._rows: dict[int, mx.array] = {}

    def draw(self, logits: mx.array, before: TokensBefore, *, index: int) -> mx.array:
        self._rows[index] = logits
        return self._source.draw(logits, before, index=index)

    def rows(self, start: int, end: int) -> tuple[mx.array, ...]:
        """Return the logits (V,) from which the reply's tokens [start, end) were drawn."""
        return tuple(self._rows[index] for index in range(start, end))


def recorded_source(model: LoadedModel, request: Request, reply: ReplyStream) -> TokenSource:
    """Return the token source of a request.

    If request.record_logits is set, the source also keeps the logits of each draw.
    """
    source = token_source(model, request, reply)
    return RecordedTokens(source) if request.record_logits else source


class Records:
    """The records of the newest finished requests that had record_logits set."""

    def __init__(self) -> None:
        self._records: OrderedDict[RequestId, LogitsRecord] = OrderedDict()

    def keep(self, sequence: Sequence) -> None:
        """Keep the record of a finished request, if the request had record_logits set.

        Call before the request's caches are added to the prefix cache, because the record includes
        the tokens in these caches.
        """
        source, request = sequence.source, sequence.request
        if not isinstance(source, RecordedTokens):
            return
        start, end = len(sequence.prompt.begun), len(sequence.reply.token_ids)
        self._records[request.request_id] = LogitsRecord(
            fed=sequence.lease.hot.run,
            prompt_ids=sequence.prompt.token_ids,
            num_begun=start,
            output_ids=tuple(sequence.output_ids),
            rows=source.rows(start, end + (sequence.ended is FinishReason.STOP)),
            sampling=request.sampling,
            is_sampled=request.forced is None and request.answer_format is None,
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
            tools=request.tools,
        )
        if len(self._records) > _MAX_RECORDS:
            self._records.popitem(last=False)

    def verify(self, model: LoadedModel | None, question: Verify) -> CheckResult:
        """Remove a request's record, check it and return the result."""
        record = self._records.pop(question.request_id, None)
        if model is None or record is None:
            return failed_check("nothing was recorded for this request")
        result = attempt("the check", lambda: check(model, record, question.messages))
        if isinstance(result, Failure):
            return failed_check(result.problem.details or result.problem.cause)
        return result

    def clear(self) -> None:
        self._records.clear()
