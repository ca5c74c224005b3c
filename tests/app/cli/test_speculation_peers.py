from __future__ import annotations

from app.cli.tree.scenario import ChatMessage
from tests.benchmarks.chat_tree_client import Endpoint
from tests.benchmarks.speculation_peers import OWN, Run, table
from tests.benchmarks.speculation_sources import TimedAnswer
from tests.fakes.chat_server import ChatServer, Fault, serve

HELLO = (ChatMessage("user", "Hello."),)


def test_endpoint_that_needs_no_usage_returns_the_first_piece_and_sends_its_options() -> None:
    with serve(ChatServer(fault=Fault.NO_USAGE)) as server:
        endpoint = Endpoint(server.url, "m", needs_usage=False, options={"repeat_penalty": 1.0})
        answer = endpoint.ask(HELLO, thinking=False, max_tokens=8)

    assert answer.usage is None
    assert (answer.first_text, answer.text) == (server.reply[0], server.reply)
    assert 0 < answer.ttft_ms < answer.total_ms
    assert server.asked[0].body["repeat_penalty"] == 1.0


def test_table_divides_speeds_of_summed_tokens_and_counts_equal_texts() -> None:
    ours = Run({"a": TimedAnswer("x", 10, 1.0), "b": TimedAnswer("y", 30, 1.0)}, 2_000_000)
    fast = Run({"a": TimedAnswer("x", 10, 0.5), "b": TimedAnswer("z", 30, 0.5)}, 3_000_000)
    other = Run({"a": TimedAnswer("w", 5, 1.0), "b": TimedAnswer("y", 5, 1.0)})

    lines = table({OWN: (ours, fast), "other": (other, other)}, {"one": ["a"], "two": ["b"]})

    assert [line.split() for line in lines[1:]] == [
        [OWN, "one", "10.0", "20.0", "2.00", "1/1", "1/1"],
        [OWN, "two", "30.0", "60.0", "2.00", "0/1", "1/1"],
        [OWN, "all", "20.0", "40.0", "2.00", "1/2", "2/2", "2,", "3"],
        ["other", "one", "5.0", "5.0", "1.00", "1/1", "0/1"],
        ["other", "two", "5.0", "5.0", "1.00", "1/1", "1/1"],
        ["other", "all", "5.0", "5.0", "1.00", "2/2", "1/2", "0,", "0"],
    ]
