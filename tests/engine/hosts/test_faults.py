"""The sentences about stages that ended without giving a reason."""

from __future__ import annotations

import pytest

from engine.hosts.faults import died, not_started
from engine.hosts.hostfile import Host

STUDIO = Host(name="studio", ips=("10.0.0.2",), is_local=False)


METAL = (
    "libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer "
    "execution failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"
)


@pytest.mark.parametrize("last_words", [METAL, "fatal: Out of memory"])
def test_stage_that_ended_for_lack_of_memory_ran_out_of_memory(last_words: str) -> None:
    problem = died(STUDIO, -6, last_words)

    assert problem.title == "studio ran out of memory."
    assert "Close other apps on it" in problem.advice
    assert "Start Again" in problem.advice


def test_stage_that_ended_with_other_words_stopped() -> None:
    problem = died(STUDIO, -6, "malloc(): corrupted top size")

    assert problem.title == "studio stopped."
    assert "-6" in problem.cause


def test_host_that_refuses_the_login_gets_advice_about_the_key_only() -> None:
    problem = not_started(STUDIO, "me@studio: Permission denied (publickey,password).")

    assert problem.title == "studio refused the login."
    assert "ssh key" in problem.advice
    assert "awake" not in problem.advice


@pytest.mark.parametrize(
    "reason",
    [
        "ssh: connect to host studio port 22: Connection refused",
        "zsh: permission denied: rejoinder",
        "",
    ],
)
def test_host_that_gave_another_reason_cannot_be_reached(reason: str) -> None:
    problem = not_started(STUDIO, reason)

    assert problem.title == "studio can’t be reached."
    assert "Remote Login" in problem.advice
