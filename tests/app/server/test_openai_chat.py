"""Chat completions of OpenAI's protocol, over HTTP, answered by a real engine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from engine.events import ModelFailed, ModelLoaded, ModelLoading
from engine.types import ForcedReply, Role
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.served_model import ServedModel, served_model
from tests.fakes.tiny_model import Template

PATH = "/v1/chat/completions"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_answer_has_text_reason_and_usage(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="A story."))
    answer = served.post(PATH, model="any", messages=[user("What is it like?")])

    assert answer.status == 200
    (choice,) = answer.body["choices"]
    assert choice["message"] == {"role": "assistant", "content": "A story.", "refusal": None}
    assert choice["finish_reason"] == "stop"
    usage = answer.body["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] == usage["rejoinder"]["restored"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    own = usage["rejoinder"]
    assert usage["prompt_tokens"] == own["restored"] + own["replayed"] + own["read"]
    assert answer.headers["x-rejoinder-read"] == str(own["read"])


def test_stream_has_the_same_text_as_the_whole_answer(served: ServedModel) -> None:
    served.replies += [ForcedReply(text="In other words, a boat.")] * 2
    body = {"messages": [user("Say that in other words.")]}
    whole = served.post(PATH, **body)
    stream = served.post(PATH, **body, stream=True, stream_options={"include_usage": True})

    *chunks, usage = [data for _, data in stream.events]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert all(chunk["usage"] is None for chunk in chunks)
    text = "".join(delta.get("content", "") for delta in deltas)
    assert text == whole.body["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert usage["usage"]["completion_tokens"] == whole.body["usage"]["completion_tokens"]
    assert stream.text.endswith("data: [DONE]\n\n")


def test_answer_ends_before_a_stop_text(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="one, two, three, four, five, six"))
    answer = served.post(PATH, messages=[user("Count.")], stop=["three", "five"])

    (choice,) = answer.body["choices"]
    assert choice["message"]["content"] == "one, two, "
    assert choice["finish_reason"] == "stop"


def test_answer_at_its_limit_says_so(served: ServedModel) -> None:
    answer = served.post(PATH, messages=[user("Hello.")], max_completion_tokens=3)

    assert answer.body["choices"][0]["finish_reason"] == "length"
    assert answer.body["usage"]["completion_tokens"] == 3


def test_sampling_of_the_body_reaches_the_engine(served: ServedModel) -> None:
    served.post(
        PATH, messages=[user("Hi.")], max_tokens=1, temperature=0.25, top_p=0.5, top_k=-1, seed=-1
    )

    sampling = served.requests[-1].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.25, 0.5, 0)
    assert sampling.seed == 2**32 - 1


def test_messages_get_one_form(served: ServedModel) -> None:
    """Developer messages, lists of parts and a system message in the middle."""
    served.post(
        PATH,
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "system", "content": [{"type": "text", "text": "Be kind."}]},
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
            {"role": "user", "content": ""},
            {"role": "system", "content": "It is late."},
            user("Go on."),
        ],
        max_tokens=1,
    )

    assert [(one.role, one.content) for one in served.requests[-1].messages] == [
        (Role.SYSTEM, "Be brief.\n\nBe kind."),
        (Role.USER, "a\nb"),
        (Role.USER, "It is late."),
        (Role.USER, "Go on."),
    ]


def test_ignored_fields_are_named(served: ServedModel) -> None:
    answer = served.post(PATH, messages=[user("Hi.")], max_tokens=1, store=False, user="me")

    assert answer.headers["x-rejoinder-ignored"] == "store, user"


REFUSED: list[tuple[str, object]] = [
    ("messages", []),
    ("messages", "Hi."),
    ("messages", [{"role": "assistant", "content": "Hello."}]),
    ("messages", [{"role": "wizard", "content": "Hi."}]),
    ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
    ("temperature", "hot"),
    ("temperature", float("nan")),
    ("n", 9),
    ("logprobs", 1),
    ("top_logprobs", 21),
    ("response_format", {"type": "json_schema", "json_schema": {"schema": 1}}),
    ("response_format", {"type": "grammar"}),
    ("max_tokens", 0),
    ("stop", [1]),
    ("tool_choice", "required"),
    ("tool_choice", {"type": "custom"}),
    ("tool_choice", "now"),
    ("logit_bias", {"1": 1}),
]


@pytest.mark.parametrize(("field", "value"), REFUSED)
def test_what_cannot_be_done_is_refused_with_the_field(
    served: ServedModel, field: str, value: object
) -> None:
    answer = served.post(PATH, **{"messages": [user("Hi.")], "max_tokens": 1, field: value})

    assert answer.status == 400
    assert field in answer.body["error"]["param"]
    assert not served.requests


def test_too_long_prompt_is_refused_with_its_length(served: ServedModel) -> None:
    most = served.get("/v1/models").body["data"][0]["context_length"]
    answer = served.post(PATH, messages=[user("a 1 " * most)])

    assert answer.status == 400
    assert answer.body["error"]["code"] == "context_length_exceeded"
    assert f"{most:,}" in answer.body["error"]["message"]


def test_request_waits_while_a_model_is_loaded(tiny_model: TinyModel) -> None:
    with served_model(None) as served, ThreadPoolExecutor() as pool:
        served.engine.load_model(str(tiny_model("qwen3_5", Template.KEEPING)))
        served.await_event(ModelLoading)
        asked = pool.submit(served.post, PATH, messages=[user("Hi.")], max_tokens=1)

        assert asked.result(PATIENCE_S).status == 200
        served.await_event(ModelLoaded)


def test_model_that_cannot_be_loaded_is_named_in_the_error(tmp_path: Path) -> None:
    with served_model(None) as served:
        served.engine.load_model(str(tmp_path / "gone"))
        served.await_event(ModelFailed)
        answer = served.post(PATH, messages=[user("Hi.")])

        assert answer.status == 503
        assert "can’t be loaded" in answer.body["error"]["message"]


def test_several_answers_have_one_prompt_and_seeds_of_their_own(served: ServedModel) -> None:
    body = {"messages": [user("Name a boat.")], "max_tokens": 6, "temperature": 1.0, "seed": 7}
    single = served.post(PATH, **body)
    answer = served.post(PATH, **body, n=8)

    choices, usage = answer.body["choices"], answer.body["usage"]
    assert [choice["index"] for choice in choices] == list(range(8))
    assert len({choice["message"]["content"] for choice in choices}) > 1
    assert [one.sampling.seed for one in served.requests[-8:]] == list(range(7, 15))
    assert usage["prompt_tokens"] == single.body["usage"]["prompt_tokens"]
    written = [one.usage.output_tokens for one in served.finished[-8:]]
    assert usage["completion_tokens"] == sum(written)
    own = usage["rejoinder"]
    assert usage["prompt_tokens"] == own["restored"] + own["replayed"] + own["read"]


def test_prompt_of_several_answers_is_read_once(served: ServedModel) -> None:
    served.post(PATH, messages=[user("Read me once, please. " * 20)], max_tokens=1, n=4)

    plans = [one.usage.plan for one in served.finished[-4:]]
    *others, reading = sorted(one.read + one.replayed for one in plans)
    assert reading > 0
    assert others == [0] * 3


def test_stream_of_several_answers_has_their_index(served: ServedModel) -> None:
    replies = ["A red boat.", "A blue boat.", "A boat."]
    served.replies += [ForcedReply(text=text) for text in replies]
    stream = served.post(
        PATH,
        messages=[user("Which boat?")],
        n=3,
        stream=True,
        stream_options={"include_usage": True},
    )

    *chunks, usage = [data for _, data in stream.events]
    texts, reasons = ["", "", ""], [None] * 3
    for chunk in chunks:
        (choice,) = chunk["choices"]
        texts[choice["index"]] += choice["delta"].get("content", "")
        reasons[choice["index"]] = reasons[choice["index"]] or choice["finish_reason"]
    assert sorted(texts) == sorted(replies)
    assert reasons == ["stop"] * 3
    written = [one.usage.output_tokens for one in served.finished[-3:]]
    assert usage["usage"]["completion_tokens"] == sum(written)
    assert stream.text.count("[DONE]") == 1


def test_each_of_several_answers_can_be_continued_without_feeding_it_again(
    served: ServedModel,
) -> None:
    asked = [user("Name another boat.")]
    first = served.post(PATH, messages=asked, n=3, max_tokens=6, temperature=1.0)
    for choice in first.body["choices"]:
        served.post(PATH, messages=[*asked, choice["message"], user("Why?")], max_tokens=1)
        assert served.finished[-1].usage.plan.replayed == 0


def test_failure_of_several_answers_is_one_error(served: ServedModel) -> None:
    most = served.get("/v1/models").body["data"][0]["context_length"]
    answer = served.post(PATH, messages=[user("a 1 " * most)], n=3)

    assert answer.status == 400
    assert answer.body["error"]["code"] == "context_length_exceeded"


def test_no_limit_of_lm_studio_is_none(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="A story."))
    answer = served.post(PATH, messages=[user("What is it like?")], max_tokens=-1)

    assert answer.body["choices"][0]["finish_reason"] == "stop"


def test_text_far_beyond_the_context_is_refused_at_once(served: ServedModel) -> None:
    most = served.get("/v1/models").body["data"][0]["context_length"]
    answer = served.post(PATH, messages=[user("a" * (65 * most))])

    assert answer.status == 400
    assert answer.body["error"]["code"] == "context_length_exceeded"
    assert not served.requests
