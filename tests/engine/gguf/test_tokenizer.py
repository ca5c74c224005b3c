from __future__ import annotations

import json
from itertools import pairwise

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from engine.errors import GgufError
from engine.gguf.header import Metadata, Value
from engine.gguf.tokenizer import read_tokenizer, tokenizer_config_json, tokenizer_json
from tests.fakes.gguf_writer import (
    CHAT_TEMPLATE,
    SPECIAL_TOKENS,
    sentence_piece_metadata,
    tiny_metadata,
)
from tests.fakes.qwen import Qwen, qwen_tokenizer
from tests.fakes.tables import rest_in_soak

TEXTS = [
    "hello world",
    "hello 12345 wow\n\n  indented\ttabs",
    "naïve café, Ünïcode: 你好世界 🎉👩‍🚀",
    "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n",
    "def f(x):\n    return x ** 12  # hello's",
    "",
]


def written(**changes: Value | None) -> Metadata:
    """Return the tiny tokenizer's metadata with changed values. The value None removes a key."""
    values: dict[str, Value] = tiny_metadata()
    for key, value in changes.items():
        values.pop(f"tokenizer.ggml.{key}", None)
        if value is not None:
            values[f"tokenizer.ggml.{key}"] = value
    return Metadata(values)


def reference(pre: str) -> Tokenizer:
    """Build the tiny tokenizer from the classes of the tokenizers library, without the importer."""
    metadata = Metadata(tiny_metadata())
    tokens = metadata.texts("tokenizer.ggml.tokens")
    parts = [merge.partition(" ") for merge in metadata.texts("tokenizer.ggml.merges")]
    merges = [(left, right) for left, _, right in parts]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([digits, byte_level]) if pre == "smollm" else byte_level
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(  # pyright: ignore[reportUnknownMemberType] - a bare list in its stubs
        [AddedToken(token, normalized=False) for token in SPECIAL_TOKENS]
    )
    return tokenizer


@pytest.mark.parametrize("pre", ["smollm", "gpt-2"])
def test_imported_tokenizer_equals_the_reference_and_decodes_to_text(pre: str):
    ours = Tokenizer.from_str(tokenizer_json(read_tokenizer(written(pre=pre))))
    theirs = reference(pre)
    for text in TEXTS:
        token_ids = ours.encode(text).ids
        assert token_ids == theirs.encode(text).ids
        assert ours.decode(token_ids, skip_special_tokens=False) == text


def test_smollm_pre_tokenizer_never_merges_digits():
    counts = {
        pre: len(
            Tokenizer.from_str(tokenizer_json(read_tokenizer(written(pre=pre)))).encode("12").ids
        )
        for pre in ("smollm", "gpt-2")
    }
    assert counts == {"smollm": 2, "gpt-2": 1}


def test_control_tokens_are_special_and_user_defined_ones_are_not():
    tokens = tiny_metadata()["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    kinds = [3, 3, 4] + [1] * (len(tokens) - 3)
    added = json.loads(tokenizer_json(read_tokenizer(written(token_type=kinds))))["added_tokens"]
    assert [(token["content"], token["special"]) for token in added] == [
        ("<|endoftext|>", True),
        ("<|im_start|>", True),
        ("<|im_end|>", False),
    ]


def test_tokenizer_config_has_special_tokens_and_the_template():
    content = json.loads(tokenizer_config_json(read_tokenizer(written()), context_len=512))
    assert content["eos_token"] == "<|im_end|>"
    assert content["bos_token"] == "<|im_start|>"
    assert content["unk_token"] == "<|endoftext|>"
    assert content["pad_token"] == "<|im_end|>"
    assert content["chat_template"] == CHAT_TEMPLATE
    assert content["model_max_length"] == 512


def test_both_end_tokens_of_a_reply_are_kept():
    assert read_tokenizer(written(eot_token_id=0)).eos_ids == (2, 0)
    assert read_tokenizer(written(eos_token_id=3, eot_token_id=4)).eos_ids == (3, 4, 0, 2)
    assert read_tokenizer(written(eot_token_id=2)).eos_ids == (2, 0)
    assert read_tokenizer(written(bos_token_id=None)).bos_id is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "bert"}, "Its tokenizer is of the kind 'bert'; byte-level BPE (gpt2) and"),
        ({"model": "llama"}, "'tokenizer.ggml.scores' is missing or not a list of numbers."),
        (
            {"pre": "chatglm-bpe"},
            "Its pre-tokenizer is 'chatglm-bpe'; what can be imported is: gpt-2, smollm, qwen2, ",
        ),
        (
            {"merges": ["zzz y"]},
            "Its tokenizer merges 'zzz y', which are not all tokens of its own.",
        ),
        ({"tokens": ["a", "a"], "token_type": [1, 1]}, "Its list of tokens has doubles"),
        ({"token_type": [1]}, "or lacks their kinds"),
        ({"eos_token_id": 9999}, "Its tokenizer.ggml.eos_token_id is 9999, but it has only"),
        ({"eos_token_id": None}, "It names no token that ends a reply."),
        ({"tokens": None}, "'tokenizer.ggml.tokens' is missing or not a list of texts."),
    ],
)
def test_unsupported_tokenizer_is_refused_with_the_cause(
    changes: dict[str, Value | None], sentence: str
):
    with pytest.raises(GgufError) as caught:
        read_tokenizer(written(**changes))
    assert sentence in caught.value.problem.cause


def test_file_without_a_chat_template_is_refused():
    values = {
        key: value for key, value in written().values.items() if key != "tokenizer.chat_template"
    }
    with pytest.raises(GgufError, match="It has no chat template"):
        read_tokenizer(Metadata(values))


def merged(text: str, scores: dict[str, float]) -> list[str]:
    """Divide text as SentencePiece does: join the neighbours whose joined token scores highest."""
    pieces = list(text)
    while True:
        pairs = [left + right for left, right in pairwise(pieces)]
        known = [(-scores[pair], at) for at, pair in enumerate(pairs) if pair in scores]
        if not known:
            return pieces
        at = min(known)[1]
        pieces[at : at + 2] = [pairs[at]]


@pytest.mark.parametrize("prefix", [True, False])
def test_sentence_piece_tokens_equal_a_slow_reference(prefix: bool):
    metadata = Metadata(sentence_piece_metadata(add_space_prefix=prefix))
    tokens, all_scores = (
        metadata.texts("tokenizer.ggml.tokens"),
        metadata.values["tokenizer.ggml.scores"],
    )
    assert isinstance(all_scores, list)
    scores = {
        token: float(score)
        for token, score, kind in zip(
            tokens, all_scores, metadata.integers("tokenizer.ggml.token_type"), strict=True
        )
        if kind == 1
    }
    tokenizer = Tokenizer.from_str(tokenizer_json(read_tokenizer(metadata)))
    for text in ("hello world", "  hellhello  worldwor", "the old  world, hello"):
        pieces = merged(("▁" if prefix else "") + text.replace(" ", "▁"), scores)
        token_ids = tokenizer.encode(text).ids
        assert token_ids == [tokens.index(piece) for piece in pieces]
        assert tokenizer.decode(token_ids) == text


def test_sentence_piece_writes_unknown_characters_as_bytes():
    metadata = Metadata(sentence_piece_metadata(add_space_prefix=False))
    tokenizer = Tokenizer.from_str(tokenizer_json(read_tokenizer(metadata)))
    encoded = tokenizer.encode("<|im_start|>hello你<|im_end|>")
    assert encoded.tokens == ["<|im_start|>", "hello", "<0xE4>", "<0xBD>", "<0xA0>", "<|im_end|>"]
    assert tokenizer.decode(encoded.ids) == "hello你"


def test_phi_3_keeps_blanks_after_control_tokens_out_of_the_prompt():
    values = sentence_piece_metadata(add_space_prefix=False) | {"general.name": "Phi-3 mini"}
    tokenizer = Tokenizer.from_str(tokenizer_json(read_tokenizer(Metadata(values))))
    start, end, hello, newline = map(
        tokenizer.token_to_id, ("<|im_start|>", "<|endoftext|>", "hello", "\n")
    )
    assert tokenizer.encode("<|im_start|>\nhello").ids == [start, hello]
    assert tokenizer.encode("<|endoftext|>\nhello").ids == [end, newline, hello]


def test_long_sentence_piece_token_is_refused():
    values = sentence_piece_metadata(add_space_prefix=False)
    tokens = Metadata(values).texts("tokenizer.ggml.tokens")
    values["tokenizer.ggml.tokens"] = [*tokens[:-1], "a" * 257]
    with pytest.raises(GgufError, match="ordinary token of more than 256 characters"):
        read_tokenizer(Metadata(values))


def test_sentence_piece_tokens_with_too_many_characters_are_refused():
    values = sentence_piece_metadata(add_space_prefix=False)
    tokens = [f"{number:0256}" for number in range(31_251)]
    values["tokenizer.ggml.tokens"] = tokens
    values["tokenizer.ggml.token_type"] = [1] * len(tokens)
    values["tokenizer.ggml.scores"] = [0.0] * len(tokens)
    with pytest.raises(GgufError, match="Its tokens have more than 8,000,000 characters"):
        read_tokenizer(Metadata(values))


@pytest.mark.parametrize(
    ("pre", "words"),
    [
        ("gpt-2", "HelloWorld 's Ġ Ġx 1234"),
        ("qwen2", "HelloWorld 's Ġ Ġx 1 2 3 4"),
        ("dbrx", "HelloWorld 's Ġ Ġx 123 4"),
        ("tekken", "Hello World 's Ġ Ġx 1 2 3 4"),
        ("gpt-4o", "Hello World's Ġ Ġx 123 4"),
    ],
)
def test_pre_tokenizer_divides_text_into_its_words(pre: str, words: str):
    tokenizer = Tokenizer.from_str(tokenizer_json(read_tokenizer(written(pre=pre))))
    assert tokenizer.pre_tokenizer is not None
    divided = tokenizer.pre_tokenizer.pre_tokenize_str("HelloWorld's  x1234")
    assert [word for word, _ in divided] == words.split()


@pytest.mark.parametrize(
    ("qwen", "pre", "num_tokens"),
    rest_in_soak(
        [
            (Qwen.QWEN3, "qwen2", 20_000),
            (Qwen.QWEN3_6, "qwen35", 20_000),
            (Qwen.QWEN3, "qwen2", None),
            (Qwen.QWEN3_6, "qwen35", None),
        ],
        (Qwen.QWEN3, "qwen2", 20_000),
        (Qwen.QWEN3_6, "qwen35", 20_000),
    ),
)
def test_imported_qwen_vocabulary_gives_the_tokens_of_the_real_tokenizer(
    qwen: Qwen, pre: str, num_tokens: int | None
):
    real = qwen_tokenizer(qwen, num_tokens)
    content = json.loads(real.to_str())
    vocab: dict[str, int] = content["model"]["vocab"]
    added = {token["id"]: token for token in content["added_tokens"]}
    tokens = sorted(
        vocab | {token["content"]: i for i, token in added.items()},
        key=lambda t: real.token_to_id(t) or 0,
    )
    kinds = [1 if i not in added else 3 if added[i]["special"] else 4 for i in range(len(tokens))]
    merges = [
        pair if isinstance(pair, str) else " ".join(pair) for pair in content["model"]["merges"]
    ]
    metadata = written(
        pre=pre,
        tokens=tokens,
        token_type=kinds,
        merges=merges,
        bos_token_id=None,
        eos_token_id=tokens.index("<|im_end|>"),
    )

    imported = Tokenizer.from_str(tokenizer_json(read_tokenizer(metadata)))

    texts = [
        *TEXTS,
        "cafe\u0301 हिन्दी ไทย",
        "I'LL we'd 3.14159 \r\n\r\n x",
        "<think>\n\n</think>\n\n",
    ]
    for text in texts:
        assert imported.encode(text).ids == real.encode(text).ids
