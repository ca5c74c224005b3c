"""The counts of the server in Prometheus's text format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from engine.types import ForcedReply
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.served_model import KEY, ServedModel, served_model
from tests.fakes.tiny_model import Template

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "Hello there."}]


@pytest.fixture
def fresh(tiny_model: TinyModel) -> Iterator[ServedModel]:
    """Return a server whose counts are 0."""
    with served_model(tiny_model("qwen3_5", Template.KEEPING)) as served:
        yield served


def values(served: ServedModel) -> dict[str, int]:
    lines = served.get("/metrics").text.splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#")]
    return {name.removeprefix("rejoinder_"): int(value) for name, value in pairs}


def test_counts_are_those_of_the_answers(fresh: ServedModel) -> None:
    for _ in range(2):
        fresh.post(CHAT, messages=HELLO, max_tokens=3)
    fresh.post(CHAT, messages=HELLO, max_tokens=3, n=2)

    counts = values(fresh)
    assert counts['requests_total{outcome="answered"}'] == 3
    assert counts["open_requests"] == 0
    plans = [one.usage.plan for one in fresh.finished]
    for origin in ("restored", "replayed", "read"):
        total = sum(getattr(plan, origin) for plan in plans)
        assert counts[f'prompt_tokens_total{{origin="{origin}"}}'] == total
    assert counts['prompt_tokens_total{origin="restored"}'] > 0
    written = sum(one.usage.output_tokens for one in fresh.finished)
    assert counts["written_tokens_total"] == written


def test_refused_requests_are_counted(fresh: ServedModel) -> None:
    fresh.post(CHAT, messages=HELLO, n=9)
    fresh.send("POST", CHAT, b"{")
    fresh.post(CHAT, messages=[{"role": "user", "content": "a 1 " * 40_000}])

    counts = values(fresh)
    assert counts['requests_total{outcome="refused"}'] == 3
    assert counts['requests_total{outcome="answered"}'] == 0


def test_request_without_a_model_has_failed() -> None:
    with served_model(None) as served:
        served.post(CHAT, messages=HELLO)

        assert values(served)['requests_total{outcome="failed"}'] == 1


@pytest.mark.parametrize("num_answers", [1, 3])
def test_open_answers_are_counted_until_their_client_goes(
    fresh: ServedModel, num_answers: int
) -> None:
    fresh.replies += [ForcedReply(text="word " * 2000)] * 4
    connection = fresh.connect()
    body = {"messages": HELLO, "max_tokens": 4000, "stream": True, "n": num_answers}
    connection.request("POST", CHAT, json.dumps(body), {"authorization": f"Bearer {KEY}"})
    response = connection.getresponse()
    while b'"content": "w' not in response.readline():
        pass
    assert values(fresh)["open_requests"] == num_answers
    response.close()
    connection.close()
    while (counts := values(fresh))["open_requests"]:
        pass

    assert counts['requests_total{outcome="abandoned"}'] == 1
    fresh.await_idle()
    assert all(one.usage.output_tokens < 1000 for one in fresh.finished)


def test_metrics_have_the_form_of_prometheus(fresh: ServedModel) -> None:
    answer = fresh.get("/metrics")

    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.endswith("\n")
    pattern = r'# (HELP|TYPE) rejoinder_[a-z_]+ .+|rejoinder_[a-z_]+(\{[a-z]+="[a-z]+"\})? \d+'
    assert all(re.fullmatch(pattern, line) for line in answer.text.splitlines())


def test_metrics_need_the_key(fresh: ServedModel) -> None:
    assert fresh.send("GET", "/metrics", headers={"authorization": ""}).status == 401
