"""The cost of a request: the origin of its prompt tokens, with reasons, and durations. No mlx."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class ReasonKind(StrEnum):
    """The reason why prompt tokens were fed and not restored from the cache."""

    NEW_CONVERSATION = "new_conversation"  # no model has read any message of the conversation
    NEW_MESSAGE = "new_message"  # no model has read the message
    # The message was read before, and its state is neither in memory nor on disk. The engine has no
    # record of its loss, for example because the app was started again.
    NOT_KEPT = "not_kept"
    # The answer to continue was cut off by a crash, so its tokens and its state were not saved.
    INTERRUPTED = "interrupted"
    MODEL_CHANGED = "model_changed"  # only other models have read the message
    EDITED_MESSAGE = "edited_message"  # the text of a message changed
    # Text was added at the end of the last message, for example behind an answer without tokens.
    ADDED_TEXT = "added_text"
    SYSTEM_CHANGED = "system_changed"
    OPTIONS_CHANGED = "options_changed"  # Request.thinking or Request.keep_thinking changed
    TOOLS_CHANGED = "tools_changed"  # Request.tools changed
    # The chat template omits the reasoning of earlier replies.
    REASONING_DROPPED = "reasoning_dropped"
    # The chat template renders an unchanged message differently than before.
    REPLY_RENDERED = "reply_rendered"
    SNAPSHOT_EVICTED = "snapshot_evicted"  # The K/V are cached, but the snapshot was evicted.
    STATE_EVICTED = "state_evicted"  # both K/V and snapshot were evicted
    # The state was evicted, and even alone it does not fit into the budget of the prefix cache.
    CHAT_TOO_LARGE = "chat_too_large"
    MODEL_RELOADED = "model_reloaded"  # the model was unloaded, which dropped its cached state
    PROMPT_END = "prompt_end"  # all but the end of a known prompt was restored
    FAULT = "fault"  # The cached state was found to be wrong, and was removed.


# Look up kinds in a dict, which takes a fifth of the time of ReasonKind(value). A long conversation
# has thousands of reasons.
_REASON_KINDS = {kind.value: kind for kind in ReasonKind}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason why a range of prompt tokens had to be fed."""

    kind: ReasonKind
    num_tokens: int  # number of tokens in the range
    at: int  # index of the range's first token in the prompt
    text: str  # explanation for the user, one sentence
    is_again: bool = False  # True if the tokens had been fed before: PromptPlan.replayed
    # Number of the message that the reason names, else of the one with the range's first token.
    # Messages count from 1, and 0 is the system prompt. None in plans of earlier versions.
    message: int | None = None

    @classmethod
    def of(
        cls,
        kind: str,
        *,
        num_tokens: int,
        at: int,
        text: str,
        is_again: bool = False,
        message: int | None = None,
    ) -> Reason:
        """Create a reason from stored values.

        Raises:
            KeyError: kind is not a value of ReasonKind.
        """
        kind_of = _REASON_KINDS[kind]
        return cls(
            kind=kind_of,
            num_tokens=num_tokens,
            at=at,
            text=text,
            is_again=is_again,
            message=message,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPlan:
    """The origin of a prompt's tokens: restored + replayed + read = prompt_tokens.

    The sum is smaller in the usage of a request that was stopped while its prompt was read.
    """

    prompt_tokens: int  # number of tokens in the prompt
    restored: int  # number of tokens restored from the cache
    replayed: int  # number of fed tokens that had been fed before
    read: int  # number of fed tokens that had not been fed before
    # Number of tokens with cached K/V. It is larger than `restored` if a snapshot is missing.
    matched: int = 0
    # Number of restored tokens whose state was read from disk for this request.
    restored_disk: int = 0
    # Number of restored tokens that were fed before the request, while the engine was idle.
    restored_ahead: int = 0
    picture_tokens: int = 0  # number of fed tokens that stand for pictures
    reasons: tuple[Reason, ...] = ()  # reasons for all fed tokens, in prompt order

    @property
    def num_fed(self) -> int:
        """Number of tokens that were fed."""
        return self.read + self.replayed

    @property
    def is_whole(self) -> bool:
        """False if the request was stopped while its prompt was read."""
        return self.restored + self.num_fed == self.prompt_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Durations and token counts of one finished request, measured on the engine thread."""

    plan: (
        PromptPlan  # If the request was stopped while its prompt was read: the part that was read.
    )
    output_tokens: int  # number of tokens that this request drew
    queue_ms: float  # milliseconds from submission to start
    render_ms: float  # milliseconds for applying the chat template and tokenising
    restore_ms: float  # milliseconds for restoring the cached part of the prompt
    prefill_ms: float  # milliseconds from the restoration to the first delivered token
    ttft_ms: float  # time to first token: milliseconds from submission to the first delivered token
    total_ms: float  # milliseconds from submission to the end of the reply
    # Tokens per second, counted after the first token. 0 if there is no second token.
    decode_tok_s: float
    cache_bytes: int  # size of the prefix cache when the reply ended
    passes: int = 0  # number of forward passes after the prompt
    drafted_tokens: int = 0  # number of drafts that these passes verified
    accepted_tokens: int = 0  # number of drafts that the model confirmed
    disk_ms: float = 0.0  # milliseconds for reading cached state from disk, a part of restore_ms
    written_bytes: int = 0  # bytes of cached state written to disk since the model was loaded
    load_ms: float = 0.0  # part of queue_ms in which no model was ready; the app measures it
    # Milliseconds of reading that the restored tokens spared. The app estimates them. 0 if it had
    # measured no rate, or if nothing was spared.
    saved_ms: float = 0.0

    def delayed(self, delay_ms: float, *, load_ms: float) -> Usage:
        """Return the usage as measured from a point in time `delay_ms` before the submission.

        load_ms: the part of queue_ms in which no model was ready.
        """
        return replace(
            self,
            load_ms=load_ms,
            queue_ms=self.queue_ms + delay_ms,
            ttft_ms=self.ttft_ms + delay_ms,
            total_ms=self.total_ms + delay_ms,
        )
