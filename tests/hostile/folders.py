"""Hostile model folders: copies of a tiny model with one thing broken or malicious.

FOLDERS has a function for each kind of damage. `trial` loads a folder and asks the model once.
`python -m tests.hostile.table` prints what each folder gives.
"""

from __future__ import annotations

import codecs
import json
import os
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.client import ProblemError, load_model
from engine.config import EngineConfig
from engine.errors import BugError
from engine.events import RequestFailed, RequestFinished, Submit
from engine.problem import Problem
from engine.types import ConversationId, Message, Request, RequestId, Role, SamplingParams
from tests.fakes.inline_engine import InlineClient

Damage = Callable[[Path], object]

_HUGE = 10**9
_TEXT = "Write a <|im_end|> story about 12 boats, a\ud800b."


def trial(folder: Path) -> Problem | None:
    """Load a model folder and ask the model for two tokens. Return the problem, or None."""
    client = InlineClient(EngineConfig(use_openblas=False, cache_budget_bytes=1 << 28))
    try:
        load_model(client, folder, lambda _: None)
    except ProblemError as error:
        return error.problem
    request = Request(
        request_id=RequestId("r"),
        conversation_id=ConversationId("A"),
        messages=(Message(role=Role.USER, content=_TEXT),),
        new_messages=frozenset({0}),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=2,
    )
    client.send(Submit(request, 0.0))
    last = [e for e in client.run_until_idle() if isinstance(e, RequestFinished | RequestFailed)]
    return last[-1].problem if isinstance(last[-1], RequestFailed) else None


def is_honest(problem: Problem | None) -> bool:
    """Return whether a problem is a sentence about the folder, and no bug of Rejoinder."""
    return problem is None or (
        problem.title != BugError.title
        and bool(problem.cause and problem.advice)
        and problem.cause.isprintable()
        and len(problem.cause) < 700
    )


def damaged(source: Path, place: Path, kind: str) -> Path:
    """Copy the model folder `source` to a folder in `place`, damage it and return it."""
    folder = place / "model"
    shutil.copytree(source, folder)
    FOLDERS[kind](folder)
    renamed = [path for path in place.iterdir() if path.is_dir()]
    return renamed[0]


# Functions that damage a folder


def _edit(name: str, change: Callable[[dict[str, Any]], None]) -> Damage:
    def damage(folder: Path) -> None:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        change(content)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")

    return damage


def _set(name: str, **fields: object) -> Damage:
    return _edit(name, lambda content: content.update(fields))


_config = partial(_set, "config.json")
_tokenizer = partial(_set, "tokenizer.json")


def _write(name: str, content: bytes | str | Callable[[], str]) -> Damage:
    """Replace a file. Large contents are functions: each run of the tests imports this module."""

    def damage(folder: Path) -> None:
        text = content() if callable(content) else content
        raw = text.encode() if isinstance(text, str) else text
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(raw)

    return damage


def _prefixed(name: str, prefix: bytes) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).write_bytes(prefix + (folder / name).read_bytes())

    return damage


def _recoded(name: str, encoding: str) -> Damage:
    def damage(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_bytes(f"{text} ".encode(encoding))

    return damage


def _sparse(name: str, num_bytes: int) -> Damage:
    """Make a file longer, without writing its bytes."""

    def damage(folder: Path) -> None:
        with (folder / name).open("ab") as file:
            file.truncate(num_bytes)

    return damage


def _replaced(name: str, make: Callable[[Path], object]) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return damage


_fifo = partial(_replaced, make=os.mkfifo)
_folder = partial(_replaced, make=os.mkdir)


def _linked(name: str, target: str) -> Damage:
    return _replaced(name, lambda path: path.symlink_to(target))


def _renamed(name: bytes) -> Damage:
    return lambda folder: folder.replace(folder.with_name(os.fsdecode(name)))


def _template(text: str) -> Damage:
    return _write("chat_template.jinja", text)


def _added_tokens(count: int) -> Damage:
    def change(content: dict[str, Any]) -> None:
        first = 10_000
        content["added_tokens"] += [
            {"id": first + number, "content": f"<|{number}|>", "single_word": False}
            | dict.fromkeys(("lstrip", "rstrip", "normalized"), False)
            | {"special": True}
            for number in range(count)
        ]

    return _edit("tokenizer.json", change)


def _added_token(**fields: object) -> Damage:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    token = {"id": 9000, "content": "<|x|>", **flags, "special": True} | fields
    return _edit("tokenizer.json", lambda content: content["added_tokens"].append(token))


def _model(**fields: object) -> Damage:
    return _edit("tokenizer.json", lambda content: content["model"].update(fields))


def _header(change: Callable[[dict[str, Any]], None]) -> Damage:
    """Change the header of the safetensors file."""

    def damage(folder: Path) -> None:
        path = folder / "model.safetensors"
        raw = path.read_bytes()
        end = 8 + struct.unpack("<Q", raw[:8])[0]
        header = json.loads(raw[8:end])
        change(header)
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + raw[end:])

    return damage


def _tensor(**fields: object) -> Damage:
    return _header(lambda header: header["model.norm.weight"].update(fields))


def _many_entries(header: dict[str, Any]) -> None:
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    header.update({f"tensor.{number}": entry for number in range(600_000)})


def _filled(value: bytes) -> Damage:
    """Overwrite all weights with one 4-byte value."""

    def damage(folder: Path) -> None:
        path = folder / "model.safetensors"
        raw = path.read_bytes()
        end = 8 + struct.unpack("<Q", raw[:8])[0]
        path.write_bytes(raw[:end] + value * ((len(raw) - end) // 4))

    return damage


def _index(files: dict[str, str]) -> Damage:
    return _write("model.safetensors.index.json", json.dumps({"weight_map": files}))


def _many_files() -> str:
    return json.dumps({"weight_map": {f"t{n}": f"{n}.safetensors" for n in range(100_000)}})


_PADDING = {
    "strategy": {"Fixed": _HUGE},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "<|endoftext|>",
}
_TRUNCATION = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 2}
_SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
_TEMPLATE_PROCESSING = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "<|im_start|>", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {
        "<|im_start|>": {"id": "<|im_start|>", "ids": [_HUGE], "tokens": ["<|im_start|>"]}
    },
}
_LETTERS = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz ")}

_NUMBERS: dict[str, tuple[object, ...]] = {
    "vocab_size": (0, -1, 10**12, 1.5, "many", None, True, []),
    "hidden_size": (0, -64, 10**12, "wide"),
    "num_hidden_layers": (0, -1, 10**5, _HUGE, "four", 4.5, 1e999, None),
    "num_attention_heads": (0, -4, 3, _HUGE),
    "num_key_value_heads": (0, 3, _HUGE),
    "head_dim": (0, -1, _HUGE),
    "intermediate_size": (0, 10**12),
    "rms_norm_eps": ("small", float("nan"), 1e999),
    "max_position_embeddings": (0, -1, 10**18, "far"),
    "rope_theta": (0, -1, "x", 1e999),
    "rope_scaling": ({"type": "yarn"}, {"rope_type": "none such"}, [1], "x"),
    "model_type": ("", 5, None, "../evil", "llama\x1b[2J", "base", "__init__"),
    "architectures": (5, ["EvilModel"], [5]),
    "quantization": (
        "x",
        {},
        {"bits": 3, "group_size": 0},
        {"bits": 99, "group_size": 64},
        {"bits": 4, "group_size": 64, "mode": "none such"},
    ),
    "quantization_config": ({"quant_method": "gptq"}, {"quant_method": 5}, [], "x"),
    "eos_token_id": ("x", -1, _HUGE, [[1]], {"a": 1}, None),
    "tie_word_embeddings": (False, "no"),
    "text_config": ({"num_hidden_layers": _HUGE}, [], "x"),
}
FOLDERS: dict[str, Damage] = {
    **{
        f"{key} {value}": _config(**{key: value})
        for key, values in _NUMBERS.items()
        for value in values
    },
    "layer_types long": _config(layer_types=["full_attention"] * 300_000),
    "num_labels many": _config(num_labels=_HUGE),
    "model_file": _config(model_file="evil.py"),
    "auto_map": _set("tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.T", None]}),
    # Text of config.json
    "config empty": _write("config.json", ""),
    "config list": _write("config.json", "[]"),
    "config number": _write("config.json", "NaN"),
    "config nested": _write("config.json", '{"a":' * 100_000),
    "config nested less": _write("config.json", '{"a":' * 900 + "1" + "}" * 900),
    "config large": _write("config.json", lambda: json.dumps({"a": [[]] * 3_000_000})),
    "config 1 GB": _sparse("config.json", 1 << 30),
    "config binary": _write("config.json", bytes(range(256)) * 100),
    "config with byte order mark": _prefixed("config.json", codecs.BOM_UTF8),
    "config utf-16": _recoded("config.json", "utf-16"),
    "config surrogate": _config(note="\ud800"),
    "config tagged float": _config(rms_norm_eps={"__float__": "x"}),
    # Kinds of files
    **{
        f"fifo {name}": _fifo(name)
        for name in (
            "config.json",
            "generation_config.json",
            "hf_quant_config.json",
            "tokenizer.json",
            "tokenizer_config.json",
            "special_tokens_map.json",
            "chat_template.jinja",
            "model.safetensors",
            "model-2.safetensors",
        )
    },
    **{
        f"folder {name}": _folder(name)
        for name in ("config.json", "generation_config.json", "tokenizer.json", "model.safetensors")
    },
    "link to nothing": _linked("tokenizer_config.json", "nowhere"),
    "link to itself": _linked("config.json", "config.json"),
    "link to a device": _linked("generation_config.json", "/dev/zero"),
    "name not utf-8": _renamed(b"mod\xff\xfeel"),
    "name with controls": _renamed(b"mo\x1b[2J\ndel"),
    # generation_config.json
    "generation list": _write("generation_config.json", "[]"),
    "generation with byte order mark": _prefixed("generation_config.json", codecs.BOM_UTF8),
    "generation latin-1": _write("generation_config.json", b'{"a": "\xe9"}'),
    "generation words": _set("generation_config.json", temperature="hot", top_k=1e999, top_p=[]),
    "generation end token": _set("generation_config.json", eos_token_id=[_HUGE, -5]),
    "generation end text": _set("generation_config.json", eos_token_id="</s>"),
    "generation end texts": _set("generation_config.json", eos_token_id=["</s>", 2.5, True, [1]]),
    "generation end object": _set("generation_config.json", eos_token_id={"a": 1}),
    "generation nested": _write("generation_config.json", '{"a":' * 100_000),
    "generation digits": _write("generation_config.json", f'{{"top_k": 1{"0" * 5000}}}'),
    "generation 1 GB": _sparse("generation_config.json", 1 << 30),
    # tokenizer.json
    "tokenizer empty": _write("tokenizer.json", "{}"),
    "tokenizer without a model": _tokenizer(model={}),
    "tokenizer 1 GB": _sparse("tokenizer.json", 1 << 30),
    "tokenizer nested": _write("tokenizer.json", '{"a":' * 100_000 + "}"),
    "tokenizer 60 MB": _write("tokenizer.json", lambda: '{"a":[' + "1," * 29_000_000 + "1]}"),
    "100,000 added tokens": _added_tokens(100_000),
    "400,000 added tokens": _added_tokens(400_000),
    "added token without text": _added_token(content=""),
    "added token of a blank": _added_token(content=" "),
    "added token of a letter": _added_token(content="e", special=False),
    "added token far away": _added_token(id=_HUGE),
    "padding": _tokenizer(padding=_PADDING),
    "truncation": _tokenizer(truncation=_TRUNCATION),
    "truncation to nothing": _tokenizer(truncation=_TRUNCATION | {"max_length": 0}),
    "normalizer prepends": _tokenizer(normalizer={"type": "Prepend", "prepend": "x" * 100_000}),
    "normalizer charsmap": _tokenizer(
        normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAAAAECAwQFBgcICQ=="}
    ),
    "normalizer empties": _tokenizer(
        normalizer={"type": "Replace", "pattern": {"Regex": "."}, "content": ""}
    ),
    "normalizer grows": _tokenizer(
        normalizer={
            "type": "Sequence",
            "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}]
            * 6,
        }
    ),
    "pattern backtracks": _tokenizer(
        pre_tokenizer=_SPLIT | {"pattern": {"Regex": "(\\S+\\s*)+(\\S+\\s*)+;"}}
    ),
    "pattern explodes": _tokenizer(
        pre_tokenizer=_SPLIT | {"pattern": {"Regex": "((a{999}){999}){999}"}}
    ),
    "pattern invalid": _tokenizer(pre_tokenizer=_SPLIT | {"pattern": {"Regex": "(["}}),
    "pre-tokenizer unknown": _tokenizer(pre_tokenizer={"type": "Evil"}),
    "no pre-tokenizer": _tokenizer(pre_tokenizer=None),
    "post-processor adds": _tokenizer(post_processor=_TEMPLATE_PROCESSING),
    "post-processor large": _tokenizer(
        post_processor=_TEMPLATE_PROCESSING
        | {"single": [{"Sequence": {"id": "A", "type_id": 0}}] * 100_000}
    ),
    "post-processor roberta": _tokenizer(
        post_processor={
            "type": "RobertaProcessing",
            "sep": ["</s>", _HUGE],
            "cls": ["<s>", _HUGE],
            "trim_offsets": True,
            "add_prefix_space": True,
        }
    ),
    "decoder regex": _tokenizer(
        decoder={"type": "Replace", "pattern": {"Regex": "(x+x+)+y"}, "content": ""}
    ),
    "decoder strips": _tokenizer(
        decoder={"type": "Strip", "content": "x", "start": _HUGE, "stop": _HUGE}
    ),
    "decoder wordpiece": _tokenizer(decoder={"type": "WordPiece", "prefix": "", "cleanup": True}),
    "decoder ctc": _tokenizer(
        decoder={"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": True}
    ),
    "no decoder": _tokenizer(decoder=None),
    "word level without unk": _tokenizer(
        model={"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "[UNK]"}
    ),
    "word piece without unk": _tokenizer(
        model={
            "type": "WordPiece",
            "vocab": {"x": 0},
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
        }
    ),
    "unigram without unk": _tokenizer(
        model={"type": "Unigram", "unk_id": None, "vocab": [["x", 0.0]], "byte_fallback": False}
    ),
    "unigram unk far": _tokenizer(model={"type": "Unigram", "unk_id": 99, "vocab": [["x", 0.0]]}),
    "unigram nan": _tokenizer(
        model={"type": "Unigram", "unk_id": 0, "vocab": [["x", -1e308], ["y", 1e308]]}
    ),
    "ids beyond the model": _model(
        vocab={letter: number + 5_000_000 for letter, number in _LETTERS.items()}, merges=[]
    ),
    "vocabulary of letters": _model(vocab=_LETTERS, merges=[]),
    "vocabulary empty": _model(vocab={}, merges=[]),
    "merges unknown": _model(merges=["zz qq"]),
    "dropout": _model(dropout=0.5),
    "dropout wrong": _model(dropout=7.5),
    # tokenizer_config.json
    "tokenizer settings list": _write("tokenizer_config.json", "[]"),
    "tokenizer class unknown": _set("tokenizer_config.json", tokenizer_class="EvilTokenizer"),
    "tokenizer class number": _set("tokenizer_config.json", tokenizer_class=5),
    "template type": _set("tokenizer_config.json", chat_template_type="os.path"),
    "tool parser": _set("tokenizer_config.json", tool_parser_type="os"),
    "length text": _set("tokenizer_config.json", model_max_length="long"),
    "token settings": _set("tokenizer_config.json", added_tokens_decoder={"x": {"content": 5}}),
    "first token": _set("tokenizer_config.json", bos_token={"a": 1}),
    "end token number": _set("tokenizer_config.json", eos_token=5),
    "special tokens number": _set("tokenizer_config.json", additional_special_tokens=5),
    "extra tokens": _set("tokenizer_config.json", extra_special_tokens={"a": "b", "c": 5}),
    # Templates
    "template number": lambda folder: (
        (folder / "chat_template.jinja").unlink(),
        _set("tokenizer_config.json", chat_template=5)(folder),
    )[1],
    "templates without default": lambda folder: (
        (folder / "chat_template.jinja").unlink(),
        _set("tokenizer_config.json", chat_template=[{"name": "rag", "template": "x"}])(folder),
    )[1],
    **{
        f"template {name}": _template(text)
        for name, text in {
            "empty": "",
            "syntax": "{% for %}",
            "raises": "{{ raise_exception('\x1b[2Jno ' * 1000) }}",
            "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "multiplies": "{{ 'x' * 9000000000 }}",
            "multiplies a list": "{{ ['x'] * 4000000000 }}",
            "centres": "{{ 'x' | center(9000000000) }}",
            "power": "{{ 9 ** 999999999 }}",
            "recurses": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
            "includes": "{% include '/etc/passwd' %}",
            "escapes": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
            "changes messages": "{{ messages.append(messages[0]) }}{{ messages[0].content }}",
            "undefined": "{{ messages[9].content.x.y }}",
            "twice": "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
            "rewrites": "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
            "reverses": "{% for m in messages %}{{ m.content | reverse }}{% endfor %}",
            "surrogates": "{{ '\\ud800' }}{% for m in messages %}{{ m.content }}{% endfor %}",
            "lipsum": "{{ lipsum(n=10000000) }}",
            "9 MB": "x" * 9_000_000,
            "long output": "{{ 'x' * 2000000 }}{% for m in messages %}{{ m.content }}{% endfor %}",
        }.items()
    },
    # Weights
    "weights empty": _write("model.safetensors", b""),
    "weights header 0": _write("model.safetensors", struct.pack("<Q", 0) + b"x" * 99),
    "weights header 2^63": _write("model.safetensors", struct.pack("<Q", 1 << 63) + b"x" * 99),
    "weights no json": _write("model.safetensors", struct.pack("<Q", 50) + b"x" * 99),
    "weights nested": _write("model.safetensors", struct.pack("<Q", 90_000) + b"[" * 90_000),
    "weights many entries": _header(_many_entries),
    "weights pointer": _write("model.safetensors", "version https://git-lfs\noid 1\n"),
    "weights text": _write("model.safetensors", "<html>404</html>"),
    "tensor offset": _tensor(data_offsets=[10**15, 10**15 + 256]),
    "tensor offset negative": _tensor(data_offsets=[-256, 0]),
    "tensor shape": _tensor(shape=[10**9, 10**9]),
    "tensor shape negative": _tensor(shape=[-8, -8]),
    "tensor shape wrong": _tensor(shape=[8, 8]),
    "tensor shape text": _tensor(shape="x"),
    "tensor type": _tensor(dtype="F999"),
    "tensor type number": _tensor(dtype=5),
    "tensor of whole numbers": _tensor(dtype="I32"),
    "tensor missing": _header(lambda header: header.pop("model.norm.weight")),
    "tensor of another name": _header(
        lambda header: header.update({"evil": header.pop("model.norm.weight")})
    ),
    "metadata wrong": _header(lambda header: header.update({"__metadata__": {"format": 5}})),
    "weights nan": _filled(struct.pack("<f", float("nan"))),
    "weights infinite": _filled(struct.pack("<f", float("inf"))),
    "weights zero": _filled(bytes(4)),
    "weights large": _filled(struct.pack("<f", 1e38)),
    "index missing file": _index({"a": "model-00001-of-00002.safetensors"}),
    "index outside": _index({"a": "../../etc/passwd"}),
    "index of 100,000 files": _write("model.safetensors.index.json", _many_files),
    "index empty": _index({}),
    "index of words": _write("model.safetensors.index.json", '{"weight_map": {"a": 5}}'),
    "series of 99,999": _write("model-00001-of-99999.safetensors", b"x"),
}
