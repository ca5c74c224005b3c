"""Pictures in the prompts of templates that write them wrongly, and in texts that look like them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.chat.prompt_builder import PromptBuilder
from engine.errors import TemplateError
from engine.picture_ids import picture_ids, picture_spans
from engine.types import Message, Picture, Role
from tests.fakes.texts import FakeRenderer, chat_tokenizer

PLACEHOLDER = "<|picture|>"
CAT, DOG = (Picture(digest=name, width=64, height=64) for name in ("cat", "dog"))


class Rules:
    placeholder = PLACEHOLDER
    opening = closing = ""

    def ids(self, picture: Picture) -> tuple[int, ...]:
        return picture_ids(picture.digest, 4)


def builder(places: Sequence[int]) -> PromptBuilder:
    """Return a builder whose template writes this number of placeholders for each user message."""

    def render(messages: Sequence[Message], _reply_follows: bool) -> str:
        shown = zip(messages, places, strict=False)
        return "".join(f"\n{PLACEHOLDER * number}{m.content}" for m, number in shown)

    return PromptBuilder(chat_tokenizer(), FakeRenderer(render), Rules())


def seen(text: str, *pictures: Picture) -> Message:
    return Message(role=Role.USER, content=text, pictures=pictures)


@pytest.mark.parametrize(
    ("places", "sentence"), [((2, 1), "It writes a picture twice."), ((1, 0), "leaves out")]
)
def test_template_with_another_number_of_pictures_is_refused(
    places: Sequence[int], sentence: str
) -> None:
    with pytest.raises(TemplateError, match=sentence):
        builder(places).build(
            [seen("one", CAT), seen("two", DOG)], thinking=None, keep_thinking=False
        )


def test_text_that_looks_like_a_picture_is_text() -> None:
    message = seen(f"{PLACEHOLDER} is a word", CAT)

    prompt = builder((1,)).build([message], thinking=None, keep_thinking=False)

    (span,) = picture_spans(prompt.token_ids)
    assert prompt.token_ids[span.start : span.end] == picture_ids("cat", 4)
