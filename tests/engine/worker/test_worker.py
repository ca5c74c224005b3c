"""The worker process gives the same results as this process, and no template or tokenizer hangs it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from tokenizers import Regex, Tokenizer, pre_tokenizers

from engine.chat.encoder import TextEncoder
from engine.errors import TemplateError, TextTooLongError, TokenizerError
from engine.models import isolated
from engine.models.isolated import IsolatedEncoder, IsolatedRenderer
from engine.models.renderer import JinjaRenderer
from engine.types import Message, Role
from engine.worker.process import WorkerError, shared_worker
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import TEMPLATES, Template, train_tokenizer

pytestmark = pytest.mark.slow

MESSAGES = (
    Message(role=Role.SYSTEM, content="Be brief. ⚙️"),
    Message(role=Role.USER, content="one <|im_end|>"),
    Message(role=Role.ASSISTANT, content="two", reasoning="hm"),
    Message(role=Role.USER, content=""),
)
# Templates that would take for ever, or gigabytes, each by another means.
ENDLESS = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "power": "{{ 9 ** 999999999 }}",
    "multiplied": "{{ 'x' * 9000000000 }}",
    "list": "{{ ['x'] * 4000000000 }}",
    "centred": "{{ 'x' | center(9000000000) }}",
    "indented": "{{ ('x\n' * 100000) | indent(900000) }}",
    "doubled": "{% set n = namespace(s='x') %}{% for i in range(40) %}"
    "{% set n.s = n.s ~ n.s %}{% endfor %}",
    "formatted": "{{ '%9000000000d' | format(1) }}",
}


@contextmanager
def limits(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Lower the limits of the worker process, so that the tests are short."""
    with monkeypatch.context() as patch:
        patch.setattr(isolated, "_CALL_S", 0.2)
        patch.setattr("engine.worker.process.MAX_BYTES", 400 << 20)
        yield


def rendered(template: str) -> str:
    renderer = IsolatedRenderer(template, {})
    return renderer.render(MESSAGES, options={"enable_thinking": False}, reply_follows=True)


@pytest.mark.parametrize("template", Template)
def test_worker_renders_the_same_text_as_this_process(template: Template) -> None:
    direct = JinjaRenderer(TEMPLATES[template], {}).render(
        MESSAGES, options={"enable_thinking": False}, reply_follows=True
    )

    assert rendered(TEMPLATES[template]) == direct


@pytest.mark.parametrize("template", Template)
def test_worker_divides_the_text_like_this_process(template: Template) -> None:
    direct, isolated_renderer = (
        kind(TEMPLATES[template], {}) for kind in (JinjaRenderer, IsolatedRenderer)
    )

    segments = isolated_renderer.segments(MESSAGES, options={}, reply_follows=True)
    assert segments == direct.segments(MESSAGES, options={}, reply_follows=True)
    assert len(segments) > len(MESSAGES)


def test_worker_encodes_the_same_ids_as_this_process() -> None:
    backend = train_tokenizer()
    direct, isolated_encoder = TextEncoder(backend), IsolatedEncoder(backend)

    for text in ("", "one two", "a<|im_end|>b", "\N{SLIGHTLY SMILING FACE}" * 3, "boat " * 5000):
        assert isolated_encoder.encode_text(text) == direct.encode_text(text)
        assert isolated_encoder.encode_template(text) == direct.encode_template(text)
        assert isolated_encoder.encode_run("<|im_start|>", text) == direct.encode_run(
            "<|im_start|>", text
        )


@pytest.mark.parametrize("name", rest_in_soak(ENDLESS, "power", "doubled"))
def test_endless_template_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with limits(monkeypatch), pytest.raises(TemplateError) as caught:
        rendered(ENDLESS[name])

    assert caught.value.problem.cause.startswith("It ")
    assert rendered("{{ messages[1].content }}") == MESSAGES[1].content  # a new process works


def test_template_that_raises_a_long_text_gives_a_short_printable_sentence() -> None:
    with pytest.raises(TemplateError) as caught:
        rendered("{{ raise_exception('\x1b[2Jno ' * 1000000) }}")

    cause = caught.value.problem.cause
    assert cause.startswith("It says: ")
    assert len(cause) < 400
    assert cause.isprintable()


def test_tokenizer_that_backtracks_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = train_tokenizer()
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"(x+x+)+y"), "isolated")
    encoder = IsolatedEncoder(backend)
    assert encoder.encode_text("xy")
    with limits(monkeypatch), pytest.raises(TokenizerError, match="It takes longer than"):
        # Each word takes a second or less, so the limit of the regular-expression library is not
        # reached.
        encoder.encode_text(("x" * 20 + "z") * 3000)

    assert encoder.encode_text("xy")


def test_long_text_that_exceeds_a_limit_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = train_tokenizer()
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"(x+x+)+y"), "isolated")
    encoder = IsolatedEncoder(backend)
    monkeypatch.setattr(isolated, "_LONG_TEXT", 50_000)

    with limits(monkeypatch), pytest.raises(TextTooLongError, match="It takes longer than"):
        encoder.encode_text(("x" * 20 + "z") * 3000)


def test_dropped_tokenizer_leaves_the_worker_process() -> None:
    worker = shared_worker()
    encoder = IsolatedEncoder(Tokenizer.from_str(train_tokenizer().to_str()))
    encoder.encode_text("one")
    held = worker.held
    del encoder
    rendered("x")

    assert len(held - worker.held) >= 1


def test_tokenizer_is_read_again_only_after_a_change(tmp_path: Path) -> None:
    path, worker = tmp_path / "tokenizer.json", shared_worker()
    train_tokenizer().save(str(path))
    worker.rehearse_tokenizer(path)
    worker.close()
    worker.rehearse_tokenizer(path)
    assert worker.process_id is None, "an unchanged file is read again"

    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    for _ in range(2):
        with pytest.raises(WorkerError):
            worker.rehearse_tokenizer(path)
    path.write_bytes(whole)
    worker.rehearse_tokenizer(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        worker.rehearse_tokenizer(path)


def test_process_that_was_killed_while_it_rested_is_started_again() -> None:
    renderer = IsolatedRenderer("{{ messages[0].content }}", {})
    before = renderer.render(MESSAGES, options={}, reply_follows=False)
    process = psutil.Process(shared_worker().process_id)
    process.kill()
    process.wait()

    assert renderer.render(MESSAGES, options={}, reply_follows=False) == before
