"""The end of a reply: its last token and the template's text before the next message are fed."""

from __future__ import annotations

import logging

import mlx.core as mx

from engine.cache.holdings import Lease
from engine.cache.points import PointKind
from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import evaluate
from engine.chat.prompt_builder import may_call_tool
from engine.errors import Failure, attempt
from engine.models.loader import LoadedModel
from engine.runner.feeding import Feeder
from engine.runner.sequence import Sequence
from engine.sequences import common_prefix_len
from engine.types import FinishReason

log = logging.getLogger(__name__)


class Closing:
    """Feeds what is known after a reply, while the user reads the answer. Engine thread only."""

    def __init__(self, model: LoadedModel, cache: PrefixCache, feeder: Feeder) -> None:
        self._model = model
        self._cache = cache
        self._feeder = feeder

    def try_feed(self, sequence: Sequence, *, is_last: bool) -> bool:
        """Feed the end of a reply. Return False if the next prompt must be read ahead instead."""
        fed = sequence.lease.hot.num_tokens
        is_fed = attempt("feeding a reply's end", lambda: self._feed(sequence, is_last=is_last))
        if not isinstance(is_fed, Failure):
            return is_fed
        if is_fed.is_expected:
            log.info("the template refuses the next turn: %s", is_fed.problem.log_text)
        else:
            self._cache.cut_back(sequence.lease, fed)
        # A limit of time or memory may have been exceeded. Idle work tries once more.
        return is_last

    def _feed(self, sequence: Sequence, *, is_last: bool) -> bool:
        """Feed a reply's last token and the template's text between the reply and the next message.

        The template's text is not fed if it does not fit into the context. A reply that was stopped
        or cut off may be continued, so its last token gets a resume point.

        Returns:
            False if the template will render the reply differently in the next turn, for example
            without its thoughts. The next turn then resumes before the reply, so the template's
            text is not fed now.
        """
        held = sequence.prompt.followed_by(sequence.output_ids)
        if is_last:
            # A pass can take seconds beside other programs. A reply that is continued feeds its
            # newest token then: no pass has fed it before.
            self.keep_end(sequence.lease)
            return True
        if sequence.ended is not FinishReason.STOP:
            self._feeder.feed_all(held, sequence.lease)
        upcoming = self._feeder.known_prompt(sequence.upcoming)
        num_held = len(held.token_ids)
        if common_prefix_len(held.token_ids, upcoming.token_ids) < num_held:
            if may_call_tool(sequence.upcoming.messages):
                # The template keeps the reply if a tool result follows it.
                self.keep_end(sequence.lease)
            return False
        if len(upcoming.token_ids) <= self._model.facts.context_len:
            self._feeder.feed_all(upcoming, sequence.lease)
        return True

    def keep_end(self, lease: Lease, logits: mx.array | None = None) -> None:
        """Keep a resume point after the last token in a lease's caches.

        logits: logits (V,) after this token, with which the tokens are restored as a whole prompt.
        """
        points = lease.snapshots
        is_kept = bool(points) and points[-1].num_tokens == lease.hot.num_tokens
        is_of_use = self._model.layout.needs_snapshot or logits is not None
        if is_of_use and not is_kept:
            evaluate(self._cache.capture_snapshot(lease, PointKind.TAIL, logits).states, logits)
