"""The stored ids of a reply, cut to the part of its text that a rendering shows."""

from __future__ import annotations

from engine.chat.tokenizer import ChatTokenizer
from engine.types import ReplyTokens


def splice_reply(
    tokenizer: ChatTokenizer, reply: ReplyTokens, shown: str
) -> tuple[int, ...] | None:
    """Ids for the text shown, made of the reply's own ids wherever whole tokens lie inside it.

    Re-tokenising a reply often yields other ids than the model produced, and then nothing after
    the first difference could be restored. Only what a template trimmed inside a token is encoded
    anew. None: the ids are another tokenizer's, or the text is not theirs.
    """
    if reply.tokenizer_hash != tokenizer.tokenizer_hash:
        return None
    for token_ids in (reply.token_ids[reply.answer_start :], reply.token_ids):
        spliced = _cut(tokenizer, token_ids, shown)
        if spliced is not None:
            return spliced
    return None


def _cut(
    tokenizer: ChatTokenizer, token_ids: tuple[int, ...], shown: str
) -> tuple[int, ...] | None:
    text = tokenizer.decode(token_ids)
    if text == shown:
        return token_ids
    start = text.find(shown)
    if start < 0 or not shown:
        return None
    end = start + len(shown)
    ends = tokenizer.text_ends(token_ids)
    starts = [0, *ends[:-1]]
    first = next((i for i, at in enumerate(starts) if at >= start), len(token_ids))
    last = next((i for i in range(len(ends), first, -1) if ends[i - 1] <= end), first)
    if first == last:
        return None
    head, tail = text[start : starts[first]], text[ends[last - 1] : end]
    return (*tokenizer.encode_text(head), *token_ids[first:last], *tokenizer.encode_text(tail))
