"""OpenAI's older completions over HTTP, answered by a real engine."""

from __future__ import annotations

import pytest

from app.server.chat_request import ChatRequest, SignOfLife, Thought
from app.server.fields import Fields
from app.server.openai_completions import COMPLETIONS
from engine.types import ForcedReply, Role
from tests.app.server.test_openai_responses import MODEL
from tests.fakes.served_model import ServedModel

PATH = "/v1/completions"


@pytest.mark.parametrize("prompt", ["Write a story.", ["Write a story."]])
def test_prompt_is_answered_as_a_user_message(served: ServedModel, prompt: object) -> None:
    served.replies.append(ForcedReply(text="A story."))
    answer = served.post(PATH, prompt=prompt)

    messages = served.requests[-1].messages
    assert [(one.role, one.content) for one in messages] == [(Role.USER, "Write a story.")]
    (choice,) = answer.body["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("A story.", "stop")
    assert answer.body["usage"]["rejoinder"]["read"] >= 0


@pytest.mark.parametrize(
    ("stop", "text"), [("three", "one, two, "), ("ten", "one, two, three, four")]
)
def test_stream_has_the_same_text_as_the_whole_completion(
    served: ServedModel, stop: str, text: str
) -> None:
    served.replies += [ForcedReply(text="one, two, three, four")] * 2
    body = {"prompt": "Count.", "stop": stop}
    whole = served.post(PATH, **body).body
    stream = served.post(PATH, **body, stream=True, stream_options={"include_usage": True})

    *chunks, last = [event for _, event in stream.events]
    texts = [chunk["choices"][0]["text"] for chunk in chunks]
    assert "".join(texts) == whole["choices"][0]["text"] == text
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    # The model may write a token more before it is stopped at the stop text.
    written = [one["usage"]["completion_tokens"] for one in (last, whole)]
    assert written[0] == written[1] or stop == "three"
    assert stream.text.endswith("data: [DONE]\n\n")


def test_completion_at_its_limit_says_so(served: ServedModel) -> None:
    answer = served.post(PATH, prompt="Hello.", max_tokens=3)

    assert answer.body["choices"][0]["finish_reason"] == "length"


def test_reasoning_gives_only_comments() -> None:
    form = COMPLETIONS.form(Fields({}), ChatRequest(messages=()), MODEL)
    events = [*form.begin(), *form.events(SignOfLife(1, 2)), *form.events(Thought("Well."))]

    assert len(events) == 2
    assert all(event.startswith(":") for event in events)


REFUSED: list[tuple[str, object]] = [
    ("prompt", None),
    ("prompt", ""),
    ("prompt", [1, 2]),
    ("prompt", ["a", "b"]),
    ("echo", True),
    ("suffix", "The end."),
    ("best_of", 2),
    ("n", 2),
    ("logprobs", 21),
    ("max_tokens", 0),
]


@pytest.mark.parametrize(("field", "value"), REFUSED)
def test_what_cannot_be_done_is_refused_with_the_field(
    served: ServedModel, field: str, value: object
) -> None:
    answer = served.post(PATH, **{"prompt": "Hi.", "max_tokens": 1, field: value})

    assert answer.status == 400
    assert answer.body["error"]["param"] == field
    assert not served.requests
