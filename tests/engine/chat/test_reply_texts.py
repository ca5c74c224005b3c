"""Replies with blanks, markers and control tokens behind every real chat template.

tests/oracle/reply_texts.py plays them with all kinds of reasoning.
"""

from __future__ import annotations

import pytest

from tests.fakes.trl_templates import chat_templates
from tests.oracle.reply_texts import faults_of

pytestmark = pytest.mark.slow

REPLIES = [" ", "\n\n", "It is </think>", "<think>", "Yes<|im_end|>"]


@pytest.mark.parametrize("name", chat_templates())
def test_no_reply_damages_a_prompt_or_blocks_the_chat(name: str) -> None:
    faults = faults_of(name, REPLIES, reasoning="hm", thinking=None, is_drawn=False)

    assert [*faults] == []
