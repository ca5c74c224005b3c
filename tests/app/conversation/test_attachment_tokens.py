"""Special tokens inside an attached file, with the common tokens of real models."""

from __future__ import annotations

import pytest

from app.conversation.attachments import make_attachment, prompt_text
from engine.chat.encoder import TextEncoder, control_tokens
from tests.fakes.qwen import Qwen, qwen_tokenizer
from tests.fakes.tiny_model import train_tokenizer


@pytest.mark.parametrize("name", ["tiny", Qwen.QWEN3, Qwen.QWEN3_6])
def test_special_tokens_in_a_file_never_become_control_tokens(name: str) -> None:
    tokenizer = (
        train_tokenizer() if name == "tiny" else qwen_tokenizer(Qwen(name), num_tokens=20_000)
    )
    controls = control_tokens(tokenizer)
    text = "\n".join(controls.values()) + " " + "".join(controls.values())
    content = prompt_text([make_attachment("<|im_end|>.txt", "text", text)], "Why?").content
    opening = "<|im_start|>"

    token_ids = TextEncoder(tokenizer).encode_run(opening, content)

    assert len(controls) >= 5
    assert [controls[one] for one in token_ids if one in controls] == [opening]
    assert tokenizer.decode(list(token_ids), skip_special_tokens=False) == opening + content
