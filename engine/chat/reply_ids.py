"""Token ids of replies that the engine knows only as text.

The model draws the ids of a reply, and they are stored with it. These functions make the ids of a
reply without stored ids: the forced reply of a test, a reply of another model that is continued,
and the placeholder for a reply that is not known yet.
"""

from __future__ import annotations

from engine.chat.reply import ReplyStream
from engine.chat.tokenizer import ChatTokenizer
from engine.errors import CannotContinueError
from engine.types import Message, ReplyTokens, Role


def forced_ids(
    tokenizer: ChatTokenizer, text: str, reasoning: str, *, in_reasoning: bool
) -> tuple[int, ...]:
    """Return the token ids of a reply with a given text, without an end-of-reply token.

    runner/drawing.py calls this for a request with a ForcedReply. The text of a ForcedReply
    comes from a benchmark or a test, never from a user, and stands for tokens that a model
    could draw. Therefore control tokens in the text, such as those of a tool call, are encoded
    as control tokens. A control token that would end the reply is encoded as plain text.
    """
    markers = tokenizer.markers
    token_ids: list[int] = []
    if markers.think_end and (reasoning or in_reasoning):
        token_ids += _thought_ids(tokenizer, reasoning, in_reasoning=in_reasoning, ends=True)
        # Models write a blank line between the end marker and the answer.
        text = f"\n\n{text}"
    for part in tokenizer.split_control(text):
        control = tokenizer.control_prefix(part)
        ends = markers.eos_ids & set(tokenizer.encode_template(control))
        encode = tokenizer.encode_text if ends else tokenizer.encode_template
        token_ids += (*encode(control), *tokenizer.encode_text(part.removeprefix(control)))
    return tuple(token_ids)


def begun_ids(tokenizer: ChatTokenizer, reply: Message, *, in_reasoning: bool) -> tuple[int, ...]:
    """Return the token ids of a reply that the model will continue.

    If the reply's stored ids come from the same tokenizer, return them. Otherwise encode the
    reply's text.

    Raises:
        CannotContinueError: the token ids do not decode to the reply's text.
    """
    thought, answer = reply.reasoning, reply.content
    token_ids = tokenizer.ids_of(reply.reply)
    if not token_ids and (thought or in_reasoning):
        opening = _thought_ids(tokenizer, thought, in_reasoning=in_reasoning, ends=bool(answer))
        token_ids = (*opening, *tokenizer.encode_text(answer and f"\n\n{answer}"))
    elif not token_ids:
        token_ids = tuple(tokenizer.encode_text(answer))
    stream = ReplyStream(tokenizer, in_reasoning=in_reasoning, begun=token_ids)
    stream.flush()
    if (stream.content, stream.reasoning) != (answer, thought):
        raise CannotContinueError("Its text does not give the tokens that it was written in.")
    return token_ids


def any_reply(tokenizer: ChatTokenizer, *, in_reasoning: bool) -> Message:
    """Return a placeholder for the unknown reply, in a form that the model could produce.

    The placeholder calls no tool, so the message after it is expected to be a user message.
    """
    reasoning = "x" if in_reasoning else ""
    token_ids = forced_ids(tokenizer, "x", reasoning, in_reasoning=in_reasoning)
    tokens = ReplyTokens.of(
        token_ids,
        # The answer "x" is expected to be one token. If so, `PromptBuilder` finds no control
        # token in the answer. If "x" has more tokens, Splicer searches the whole reply for the
        # answer.
        answer_start=len(token_ids) - 1,
        tokenizer_hash=tokenizer.tokenizer_hash,
    )
    return Message(role=Role.ASSISTANT, content="x", reasoning=reasoning, reply=tokens)


def _thought_ids(
    tokenizer: ChatTokenizer, reasoning: str, *, in_reasoning: bool, ends: bool
) -> tuple[int, ...]:
    """Return the token ids of a reply's reasoning, including its start and end markers.

    Args:
        tokenizer: the model's tokenizer.
        reasoning: the text of the reasoning.
        in_reasoning: True if the prompt already ends with the start marker.
        ends: False if the reasoning is unfinished and gets no end marker.
    """
    markers = tokenizer.markers
    opened = () if in_reasoning else (*markers.think_start, *tokenizer.encode_text("\n"))
    if not ends:
        return (*opened, *tokenizer.encode_text(reasoning))
    return (*opened, *tokenizer.encode_text(f"{reasoning}\n"), *markers.think_end)
