"""The measurements of a step of a bench script."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from engine.questions import CheckResult
from engine.usage import Reason


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer of the engine to the question what a request will read."""

    predicted_read: int  # number of prompt tokens that the engine will feed: read + replayed
    # Seconds that feeding them will take. None before the first measurement.
    predicted_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """The measurements of one step that generated a reply."""

    op: str
    chat: str
    text: str  # text of the reply
    finish_reason: str
    prompt_tokens: int  # number of prompt tokens: restored + read + replayed
    # Number of prompt tokens with K/V in the cache, including K/V that could not be used.
    matched: int
    restored: int  # number of prompt tokens that were restored from the cache
    read: int  # number of prompt tokens of new messages that the engine fed
    replayed: int  # number of prompt tokens of earlier messages that the engine fed again
    # Number of prompt tokens that the engine fed although it had processed the same tokens, after
    # the same prefix, before.
    redo: int
    output_tokens: int
    restore_ms: float
    ttft_ms: float  # time to first token
    total_ms: float
    decode_tok_s: float
    passes: int  # number of forward passes after the prompt
    drafted_tokens: int  # number of drafts that these passes verified
    accepted_tokens: int  # number of drafts that the model confirmed
    cache_bytes: int
    restored_disk: int  # number of restored tokens whose state was read from disk
    disk_ms: float  # milliseconds for reading it, a part of restore_ms
    written_bytes: int  # bytes of cached state written to disk since the last report
    reasons: tuple[Reason, ...]  # the reasons why tokens were fed instead of restored
    preview_tokens: int = 0  # number of tokens of the preview with which the reply begins
    check: CheckResult | None = None  # None if the reply was not checked
    # True if the reply of one of several has the words of a request for it alone. None if it was
    # not one of several, or not checked.
    alone: bool | None = None
    prediction: Prediction | None = None  # None if it was not asked for
    # Tokens of each document of the folder in which the chat was begun; empty if it has none
    document_tokens: tuple[int, ...] = ()

    @property
    def holds(self) -> bool:
        """True if the checks passed or were not made, and the prediction was right or not made.

        The check passes if a second run with an empty cache and the same forward passes gives
        bit-identical logits.
        """
        check, prediction = self.check, self.prediction
        is_exact = self.alone is not False and (
            check is None or (check.equal and check.prompt_equal and check.replay_difference == 0.0)
        )
        num_fed = self.read + self.replayed
        return is_exact and (prediction is None or prediction.predicted_read == num_fed)

    def as_json(self) -> dict[str, object]:
        values = asdict(self)
        parts: list[dict[str, object]] = [values.pop("prediction") or {}, values.pop("check") or {}]
        return values | parts[0] | parts[1]
