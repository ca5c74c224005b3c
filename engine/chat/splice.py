"""Replace the text of earlier replies in a prompt by the token ids that the model produced.

Encoding a reply's text again often gives other token ids than the model produced. The prompt would
not match the cached state from the first different id on, and the engine would feed all further
tokens again.

A template may show a reply unchanged, trim it or leave its reasoning out. So `Splicer` searches the
rendered text for the text of the stored ids. It first searches for the whole reply. If the whole
reply is not found, it searches for the reasoning and the answer separately.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from engine.bounded_cache import BoundedCache
from engine.chat.segments import Segment
from engine.chat.tokenizer import ChatTokenizer
from engine.sequences import common_prefix_len
from engine.types import Message, ReplyTokens

# Highest number of bytes of the cached fits of whole replies, and of parts of replies. A reply of
# 2,000 tokens takes about 100 kB.
_FITS_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class _Fit:
    """Token ids that decode to exactly the characters [start, end) of a text."""

    start: int
    end: int
    token_ids: tuple[int, ...]

    def moved(self, by: int) -> _Fit:
        return replace(self, start=self.start + by, end=self.end + by)


class Splicer:
    """Replaces the text of replies in a prompt by their stored token ids.

    If the template removed a part of a token's text, this token's stored id is not used. The
    remaining characters of the token are encoded again. Use on the engine thread.
    """

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        self._tokenizer = tokenizer
        # Every request searches for all earlier replies again, so cache the results.
        self._fit_whole = BoundedCache(self._find_whole, _num_ids, _FITS_BYTES)
        self._fit_part = BoundedCache(self._find_part, _num_ids, _FITS_BYTES)

    def splice(self, segments: Sequence[Segment], messages: Sequence[Message]) -> list[Segment]:
        """Return segments with the text of replies replaced by their stored token ids.

        Token ids that this model cannot use are ignored (ChatTokenizer.ids_of).
        """
        fits: list[_Fit] = []
        position = next_index = 0
        for message, group in groupby(segments, lambda segment: segment.message):
            own = list(group)
            next_index += len(own)
            # A reply can begin in the template's text directly before it, but not earlier.
            start = max(0, next((i for i, s in enumerate(own) if s.is_content), 1) - 1)
            reply = messages[message].reply if message < len(messages) else None
            if reply is not None and reply.tokenizer_hash == self._tokenizer.tokenizer_hash:
                following = segments[next_index : next_index + 1]
                skipped = sum(len(segment.text) for segment in own[:start])
                found = self._fits(reply, own[start:], following)
                fits += [fit.moved(position + skipped) for fit in found]
            position += sum(len(segment.text) for segment in own)
        return list(_insert(fits, segments))

    def _fits(
        self, reply: ReplyTokens, own: Sequence[Segment], following: Sequence[Segment]
    ) -> list[_Fit]:
        """Find which characters of a reply's segments can be replaced by its stored token ids.

        Args:
            reply: the stored token ids of the reply.
            own: the segments of the reply, including the template's text before the reply.
                Positions in the result count from the start of these segments.
            following: the segment after the reply, if there is one.
        """
        lead = _literal(own[:1])
        shown = "".join(segment.text for segment in own)[len(lead) :]
        controls = tuple(self._control_spans([*own, *following]))
        whole = self._fit_whole(reply, lead, shown, _literal(following), controls)
        if whole is not None:
            return [whole]
        parts: list[_Fit] = []
        position = 0
        for segment in own:
            if segment.is_content:
                part = self._fit_part(reply, segment.text, is_reasoning=segment.is_reasoning)
                parts += [part.moved(position)] if part else []
            position += len(segment.text)
        return parts

    def _find_whole(
        self,
        reply: ReplyTokens,
        lead: str,
        shown: str,
        following: str,
        controls: tuple[tuple[int, int], ...],
    ) -> _Fit | None:
        """Fit all token ids of a reply as one sequence: reasoning, end marker and answer.

        If the template trimmed the reply's end, the last tokens are left out.

        Args:
            reply: the stored token ids of the reply.
            lead: the template's text before the reply. It may contain the start marker of the
                reasoning. If the model produced this marker, the fit starts inside `lead`.
            shown: the rendered text of the reply.
            following: the template's text after the reply. The fit may end inside it.
            controls: start and end of each control token of the template in these texts.

        Returns:
            None if `shown` is not the reply's text, or if the fit does not keep the control tokens.
        """
        token_ids = self._tokenizer.ids_of(reply)
        text = self._tokenizer.decode(token_ids)

        def is_start(index: int) -> bool:
            """Return True if the reply is the shown text, from an index in `lead` on."""
            whole = lead[index:] + shown
            # The template may have trimmed blanks at the end. Before other text, `shown` would be a
            # part of the reply, which can occur in several places.
            return text.startswith(whole) and not text[len(whole) :].strip()

        start = next(filter(is_start, range(len(lead) + 1)), None)
        if start is None:
            return None
        agreed = common_prefix_len(text, lead[start:] + shown + following)
        fit = self._whole_tokens(token_ids, 0, agreed, shift=start)
        return fit if fit is not None and self._keeps(controls, fit) else None

    def _keeps(self, controls: Iterable[tuple[int, int]], fit: _Fit) -> bool:
        """Return True if each control token of the template is outside of a fit, or a token of it.

        A model can write the text of a control token in ordinary tokens, and a template can cut a
        reply next to such text. These tokens must not replace the template's control token.
        """
        ends = self._tokenizer.text_ends(fit.token_ids)
        tokens = zip([0, *ends[:-1]], ends, fit.token_ids, strict=True)
        drawn = {
            (fit.start + start, fit.start + end)
            for start, end, token_id in tokens
            if self._tokenizer.is_control(token_id)
        }
        return all(span in drawn or span[1] <= fit.start or fit.end <= span[0] for span in controls)

    def _control_spans(self, segments: Iterable[Segment]) -> Iterator[tuple[int, int]]:
        """Yield start and end of each control token in the template's text of segments."""
        position = 0
        for segment in segments:
            parts = [segment.text]
            if segment.is_template:
                parts = self._tokenizer.split_control(segment.text)
            for part in parts:
                control = self._tokenizer.control_prefix(part) if segment.is_template else ""
                if control:
                    yield position, position + len(control)
                position += len(part)

    def _find_part(self, reply: ReplyTokens, shown: str, *, is_reasoning: bool) -> _Fit | None:
        """Find the token ids of a rendered part of a reply: its reasoning or its answer.

        The template may have trimmed the part.

        Returns:
            None if the rendered text `shown` does not occur in the reply.
        """
        whole, cut = self._tokenizer.ids_of(reply), reply.answer_start
        likeliest = whole[:cut] if is_reasoning else whole[cut:]
        for token_ids in (likeliest, whole):
            at = self._tokenizer.decode(token_ids).find(shown)
            if at >= 0 and shown:
                return self._whole_tokens(token_ids, at, at + len(shown), shift=-at)
        return None

    def _whole_tokens(
        self, token_ids: tuple[int, ...], start: int, end: int, *, shift: int
    ) -> _Fit | None:
        """Return the longest sequence of tokens whose text lies inside the characters [start, end).

        Positions are indices in the text of token_ids. `shift` is added to the positions in the
        result.

        Returns:
            None if no token's text lies inside the characters [start, end).
        """
        ends = self._tokenizer.text_ends(token_ids)
        # A token that ends inside a character has the same end position as the token before it.
        # Exclude such tokens.
        reached = max((at for at in ends if start < at <= end), default=start)
        if reached == start:
            return None
        starts = [0, *ends[:-1]]
        first = bisect_left(starts, start)
        last = len(ends) if reached == ends[-1] else bisect_left(ends, reached) + 1
        inside = token_ids[first:last]
        if not inside:
            return None
        span = slice(starts[first], ends[last - 1])
        if self._tokenizer.decode(inside) != self._tokenizer.decode(token_ids)[span]:
            return None
        return _Fit(span.start + shift, span.stop + shift, inside)


def _num_ids(fit: _Fit | None) -> int:
    return 0 if fit is None else len(fit.token_ids)


def _literal(segments: Sequence[Segment]) -> str:
    """Return the template's text at the start of segments, or "" if there is none."""
    return segments[0].text if segments and segments[0].is_template else ""


def _insert(fits: Iterable[_Fit], segments: Sequence[Segment]) -> Iterator[Segment]:
    """Yield the segments. Replace the characters of each fit by a segment with its token ids."""
    waiting = deque(fits)
    done = start = 0
    for segment in segments:
        end = start + len(segment.text)
        while waiting and waiting[0].start < end:
            fit = waiting.popleft()
            yield replace(segment, text=segment.text[done - start : fit.start - start])
            yield Segment("", segment.message, is_content=True, token_ids=fit.token_ids)
            done = fit.end
        if done < end:
            yield replace(segment, text=segment.text[done - start :])
            done = end
        start = end
