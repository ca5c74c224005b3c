"""Records of the requests that are to be checked, kept until their check. Engine thread only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import mlx.core as mx

from engine.chat.reply import ReplyStream
from engine.checking.oracle import Record, check, failed_check
from engine.errors import Failure, attempt
from engine.events import Verify
from engine.models.loader import LoadedModel
from engine.runner.drawing import TokenSource, token_source
from engine.runner.sequence import Sequence
from engine.types import CheckResult, FinishReason, Request, RequestId

# More than any client has in flight.
_MAX_RECORDS = 64


class RecordedTokens:
    """A token source that keeps the logits that each token is drawn from.

    A position that is drawn again replaces the earlier one. With look-ahead the last one may be of a
    token that is never delivered.
    """

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._rows: dict[int, mx.array] = {}  # (V,) by index in the reply

    def draw(self, logits: mx.array, recent: Callable[[], mx.array], *, index: int) -> mx.array:
        self._rows[index] = logits
        return self._source.draw(logits, recent, index=index)

    def rows(self, start: int, end: int) -> tuple[mx.array, ...]:
        """Return the logits of the tokens [start, end) of the reply."""
        return tuple(self._rows[index] for index in range(start, end))


def recorded_source(model: LoadedModel, request: Request, reply: ReplyStream) -> TokenSource:
    """Return the source of a request's tokens. It keeps their logits if the request asks for it."""
    source = token_source(model, request, reply)
    return RecordedTokens(source) if request.record_logits else source


class Records:
    """The records of finished requests whose tokens came from RecordedTokens."""

    def __init__(self) -> None:
        self._records: OrderedDict[RequestId, Record] = OrderedDict()

    def keep(self, sequence: Sequence) -> None:
        """Keep the record of a request that has ended. Call before its turn is published."""
        source, request = sequence.source, sequence.request
        if not isinstance(source, RecordedTokens):
            return
        start, end = len(sequence.prompt.begun), len(sequence.reply.token_ids)
        self._records[request.request_id] = Record(
            fed=sequence.lease.hot.run,
            prompt_ids=sequence.prompt.token_ids,
            num_begun=start,
            output_ids=tuple(sequence.output_ids),
            rows=source.rows(start, end + (sequence.ended is FinishReason.STOP)),
            sampling=request.sampling,
            is_forced=request.forced is not None,
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
        )
        if len(self._records) > _MAX_RECORDS:
            self._records.popitem(last=False)

    def verify(self, model: LoadedModel | None, command: Verify) -> CheckResult:
        """Compare a record with the bare model, and drop it."""
        record = self._records.pop(command.request_id, None)
        if model is None or record is None:
            return failed_check("nothing was recorded for this request")
        result = attempt("the check", lambda: check(model, record, command.messages))
        if isinstance(result, Failure):
            return failed_check(result.problem.details or result.problem.cause)
        return result

    def clear(self) -> None:
        self._records.clear()
