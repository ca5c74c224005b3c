"""Token ids decode to exactly the encoded text; only template text becomes control tokens."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from engine.chat.tokenizer import TextStream
from tests.fakes.texts import VOCAB_SIZE, chat_tokenizer

TOKENIZER = chat_tokenizer()
CONTROL = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<|endoftext|>"]
CONTROL_IDS = {TOKENIZER.encode_template(text)[0] for text in CONTROL}

typed = st.lists(st.sampled_from([*CONTROL, "a ", "\n", "é", "<", "think>", "数"]), max_size=8).map(
    "".join
)
any_ids = st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=40)


@settings(deadline=None)
@given(typed)
def test_typed_text_has_no_control_tokens(text: str) -> None:
    token_ids = TOKENIZER.encode_text(text)

    assert not CONTROL_IDS & set(token_ids)
    assert TOKENIZER.decode(token_ids) == text


def test_template_text_has_control_tokens() -> None:
    assert set(TOKENIZER.encode_template("<|im_start|>user")) & CONTROL_IDS
    parts = TOKENIZER.split_control("a<|im_start|>user\n<think>")

    assert parts == ["a", "<|im_start|>user\n", "<think>"]


@settings(deadline=None)
@given(any_ids)
def test_streamed_text_equals_the_decoded_ids(token_ids: list[int]) -> None:
    stream = TextStream(TOKENIZER)
    text = "".join(stream.add(token_id) for token_id in token_ids) + stream.flush()

    assert text == TOKENIZER.decode(token_ids)


@settings(deadline=None)
@given(any_ids)
def test_text_ends_are_sorted_and_end_at_the_text_length(token_ids: list[int]) -> None:
    ends = TOKENIZER.text_ends(token_ids)

    assert ends == sorted(ends)
    assert len(ends) == len(token_ids)
    if ends:
        assert ends[-1] == len(TOKENIZER.decode(token_ids))
