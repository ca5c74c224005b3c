"""The chat-tree scenario on a server with OpenAI's chat protocol. Standard library only."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.cli.processed import ProcessedTokens
from app.cli.tree.measure import StepCost
from app.cli.tree.scenario import (
    OWN_REPLY_TOKENS,
    STOP_AFTER,
    ChatMessage,
    Replies,
    Scenario,
    TreeAction,
    TreeStep,
)
from tests.benchmarks.chat_tree_client import Endpoint, EndpointError, ServerAnswer
from tests.benchmarks.chat_tree_tokens import PromptTokens

# Token limit of a reply whose text is ignored. If a reply may be longer, some servers hold back its
# first text, so the first token would seem late.
_THROWN_AWAY_TOKENS = 1
# Token limit of a reply that the client stops. The reply must not end before the stop.
_STOPPED_TOKENS = 256


class EndpointEngine:
    """An app.cli.tree.measure.TreeEngine that plays the steps on an endpoint.

    "redo" and "replayed" (see StepCost) are counted with `tokens`, then scaled to the prompt length
    that the server reports.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        scenario: Scenario,
        replies: Replies,
        tokens: PromptTokens,
        *,
        server_pid: int | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._scenario = scenario
        self._is_scripted = replies is Replies.SCRIPTED
        self._tokens = tokens
        self._server_pid = server_pid
        self._peak_bytes: int | None = None
        self._prompts: dict[str, tuple[ChatMessage, ...]] = {}
        self._replies: dict[str, str] = {}
        # Names of steps. The server has generated the reply of each step, or has read it in a
        # prompt.
        self._sent_replies: set[str] = set()
        self._processed = ProcessedTokens()

    def warm_up(self) -> None:
        hello = (ChatMessage("user", "Hello."),)
        self._endpoint.ask(hello, thinking=False, max_tokens=_THROWN_AWAY_TOKENS)

    def play(self, step: TreeStep) -> StepCost:
        messages = self._prompts[step.name] = self._scenario.messages(step, self._replies)
        answer = self._endpoint.ask(
            messages,
            thinking=step.thinking,
            max_tokens=self._max_tokens(step),
            stop_after=STOP_AFTER if step.stops else None,
        )
        cost = self._cost(step, messages, answer)
        self._keep(step, answer)
        return cost

    def cold_ttft_ms(self, step: TreeStep, nonce: str) -> float:
        system, *others = self._prompts[step.name]
        cold = (replace(system, content=f"{nonce} {system.content}"), *others)
        answer = self._endpoint.ask(cold, thinking=step.thinking, max_tokens=_THROWN_AWAY_TOKENS)
        return answer.ttft_ms

    def _max_tokens(self, step: TreeStep) -> int:
        if step.stops:
            return _STOPPED_TOKENS
        return _THROWN_AWAY_TOKENS if self._is_scripted else OWN_REPLY_TOKENS

    def _cost(
        self, step: TreeStep, messages: tuple[ChatMessage, ...], answer: ServerAnswer
    ) -> StepCost:
        prompt = self._tokens.encode(messages, thinking=step.thinking)
        known = self._processed.add(prompt)
        output = answer.reasoning + answer.text
        self._processed.add(self._tokens.encode(messages, thinking=step.thinking, output=output))
        usage, old = answer.usage, self._num_old(step, messages, prompt)

        def fed(num_tokens: int) -> int | None:
            """Return how many of the first `num_tokens` prompt tokens the server fed."""
            if usage is None:
                return None
            theirs = round(num_tokens * usage.prompt_tokens / len(prompt))
            return max(0, theirs - usage.cached_tokens)

        return StepCost(
            step=step.name,
            chat=step.chat,
            thinking=step.thinking,
            prompt_tokens=usage and usage.prompt_tokens,
            cached_tokens=usage and usage.cached_tokens,
            redo=fed(known),
            replayed=fed(old),
            output_tokens=usage and usage.output_tokens,
            ttft_ms=answer.ttft_ms,
            peak_bytes=self._measure_memory(),
        )

    def _num_old(
        self, step: TreeStep, messages: tuple[ChatMessage, ...], prompt: Sequence[int]
    ) -> int:
        """Return the number of prompt tokens before the first message that is new in this chat."""
        if step.action is TreeAction.REGENERATE:
            return len(prompt)
        if step.action is TreeAction.SEND and step.after is None:
            return 0
        is_reply_new = step.after is not None and step.after not in self._sent_replies
        first_new = len(messages) - (2 if is_reply_new else 1)
        content = messages[first_new].content
        other = replace(messages[first_new], content="?" if content[:1] != "?" else "!")
        changed = (*messages[:first_new], other, *messages[first_new + 1 :])
        common = zip(prompt, self._tokens.encode(changed, thinking=step.thinking), strict=False)
        return next((n for n, (ours, theirs) in enumerate(common) if ours != theirs), len(prompt))

    def _keep(self, step: TreeStep, answer: ServerAnswer) -> None:
        if step.after is not None:
            self._sent_replies.add(step.after)
        if self._is_scripted:
            self._replies[step.name] = step.reply.stopped if step.stops else step.reply.text
        else:
            self._replies[step.name] = answer.text
            self._sent_replies.add(step.name)

    def _measure_memory(self) -> int | None:
        if self._server_pid is not None:
            self._peak_bytes = max(self._peak_bytes or 0, peak_bytes(self._server_pid))
        return self._peak_bytes


def peak_bytes(pid: int) -> int:
    """Return the peak memory of a process on Linux, or its current memory on other systems.

    Raises:
        EndpointError: no process with this id is running.
    """
    status = Path(f"/proc/{pid}/status")
    try:
        if status.exists():
            lines = status.read_text(encoding="utf-8").splitlines()
            kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM:"))
        else:
            command = ("ps", "-o", "rss=", "-p", str(pid))
            kilobytes = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        return int(kilobytes) * 1024
    except (OSError, StopIteration, ValueError, subprocess.CalledProcessError) as error:
        raise EndpointError(f"no process {pid} is running") from error
