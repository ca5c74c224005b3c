"""What requests fed and saw, kept until they are held to the bare model. Engine thread only."""

from __future__ import annotations

import logging
from collections import OrderedDict

from engine.checking.oracle import Record, check, failed_check
from engine.events import Verify
from engine.models.loader import LoadedModel
from engine.runner.sequence import Sequence
from engine.types import CheckResult, RequestId

log = logging.getLogger(__name__)

# More than anyone has in flight.
_MAX_RECORDS = 64


class Records:
    """The records of the requests that asked for one."""

    def __init__(self) -> None:
        self._records: OrderedDict[RequestId, Record] = OrderedDict()

    def keep(self, sequence: Sequence) -> None:
        """Take the record of a request that has ended and is not settled yet."""
        request = sequence.request
        if not request.record_logits:
            return
        self._records[request.request_id] = Record(
            fed=sequence.lease.hot.run,
            prompt_ids=sequence.prompt.token_ids,
            num_begun=len(sequence.prompt.begun),
            output_ids=tuple(sequence.output_ids),
            rows=tuple(sequence.recorded),
            sampling=request.sampling,
            is_forced=request.forced is not None,
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
        )
        if len(self._records) > _MAX_RECORDS:
            self._records.popitem(last=False)

    def verify(self, model: LoadedModel | None, command: Verify) -> CheckResult:
        """Compare, and let the record go."""
        record = self._records.pop(command.request_id, None)
        if model is None or record is None:
            return failed_check("nothing was recorded for this request")
        try:
            return check(model, record, command.messages)
        except Exception as error:
            log.exception("the check failed")
            return failed_check(repr(error))

    def clear(self) -> None:
        self._records.clear()
