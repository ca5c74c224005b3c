"""Log-probabilities of the tokens of an answer, in each protocol that has them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from app.server.logprobs import scores_within
from engine.types import ForcedReply, TokenScore
from tests.fakes.served_model import Response, ServedModel

pytestmark = pytest.mark.slow

REPLY = "It is a list of things."
MESSAGES = [{"role": "user", "content": "What is it?"}]
CHAT = "/v1/chat/completions"


def post(served: ServedModel, path: str, **fields: Any) -> Response:
    served.replies.append(ForcedReply(text=REPLY))
    answer = served.post(path, **fields)
    assert answer.status == 200, answer.body
    return answer


def check(tokens: list[dict[str, Any]], num_likeliest: int) -> None:
    """Check a list of tokens against the text of the reply."""
    assert "".join(token["token"] for token in tokens) == REPLY
    for token in tokens:
        others = [other["logprob"] for other in token["top_logprobs"]]
        assert len(others) == num_likeliest
        assert others == sorted(others, reverse=True)
        assert all(logprob <= 0 for logprob in (token["logprob"], *others))
        assert max(others, default=0) >= token["logprob"]
        assert bytes(token["bytes"]).decode() == token["token"]


def test_chat_completions_have_them_whole_and_streamed(served: ServedModel) -> None:
    wanted: dict[str, Any] = {"messages": MESSAGES, "logprobs": True, "top_logprobs": 3}
    whole = post(served, CHAT, **wanted)
    streamed = post(served, CHAT, **wanted, stream=True)
    of_stream: list[dict[str, Any]] = []
    for _, data in streamed.events:
        for choice in data["choices"]:
            of_stream += (choice["logprobs"] or {"content": []})["content"]

    check(whole.body["choices"][0]["logprobs"]["content"], 3)
    assert of_stream == whole.body["choices"][0]["logprobs"]["content"]


def test_they_are_those_of_the_model_whatever_is_drawn(served: ServedModel) -> None:
    """With all tokens of the vocabulary, the probabilities have the sum 1 at any temperature."""
    found: list[list[float]] = []
    for temperature in (0.0, 1.0):
        fields = {"max_tokens": 1, "temperature": temperature, "top_p": 0.5, "seed": 1}
        asked = {"messages": MESSAGES, "logprobs": True, "top_logprobs": 20, **fields}
        body = served.post(CHAT, **asked).body
        (token,) = body["choices"][0]["logprobs"]["content"]
        found.append([other["logprob"] for other in token["top_logprobs"]])
        assert 0 < sum(map(math.exp, found[-1])) < 1

    assert found[0] == found[1]


def test_other_protocols_have_them(served: ServedModel) -> None:
    older = post(served, "/v1/completions", prompt="What is it?", logprobs=2)
    columns = older.body["choices"][0]["logprobs"]
    assert "".join(columns["tokens"]) == REPLY
    assert len(columns["token_logprobs"]) == len(columns["text_offset"]) == len(columns["tokens"])
    assert REPLY[columns["text_offset"][1] :].startswith(columns["tokens"][1])
    assert {len(likeliest) for likeliest in columns["top_logprobs"]} <= {1, 2}  # equal texts

    include = ["message.output_text.logprobs"]
    responses: dict[str, Any] = {"input": "What is it?", "include": include, "top_logprobs": 1}
    whole = post(served, "/v1/responses", **responses)
    check(whole.body["output"][-1]["content"][0]["logprobs"], 1)
    assert "x-rejoinder-ignored" not in whole.headers
    streamed = post(served, "/v1/responses", **responses, stream=True)
    (done,) = [data for _, data in streamed.events if data["type"] == "response.output_text.done"]
    check(done["logprobs"], 1)

    asked = {"messages": MESSAGES, "stream": False, "logprobs": True}
    check(post(served, "/api/chat", **asked).body["logprobs"], 0)


def test_answers_without_the_wish_have_none(served: ServedModel) -> None:
    answer = post(served, CHAT, messages=MESSAGES, top_logprobs=2)

    assert answer.body["choices"][0]["logprobs"] is None


def test_stop_text_and_reasoning_have_none(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text=REPLY, reasoning="Let me think."))
    fields = {"messages": MESSAGES, "logprobs": True, "stop": " of", "reasoning_effort": "high"}
    choice = served.post(CHAT, **fields).body["choices"][0]
    text = "".join(token["token"] for token in choice["logprobs"]["content"])

    assert choice["message"]["content"] == "It is a list"
    # A token that ends behind the stop text has none.
    assert "It is a list".startswith(text)
    assert text


def test_token_that_begins_within_the_text_and_ends_behind_it_is_left_out() -> None:
    texts = (("ab", 2), ("cd", 4), ("e", 5))
    scores = [TokenScore(text=text, end=end, logprob=-1.0) for text, end in texts]

    assert scores_within(scores, 3) == tuple(scores[:1])
    assert scores_within(scores, 5) == tuple(scores)
