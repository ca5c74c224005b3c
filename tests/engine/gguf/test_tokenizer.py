from __future__ import annotations

import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from engine.errors import GgufError
from engine.gguf.reader import Metadata, Value
from engine.gguf.tokenizer import read_tokenizer, tokenizer_config_json, tokenizer_json
from tests.fakes.gguf_writer import CHAT_TEMPLATE, SPECIAL_TOKENS, tiny_metadata

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
