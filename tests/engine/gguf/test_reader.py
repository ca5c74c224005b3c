from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from engine.errors import GgufError
from engine.gguf.convert import plan_conversion
from engine.gguf.reader import TensorKind, part_paths, read_gguf
from tests.fakes.gguf_writer import gguf_bytes, plain_tensor, random_tensor, tiny_llama

TINY = tiny_llama((TensorKind.Q4_1, TensorKind.Q6_K)).to_bytes()


def write(folder: Path, content: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(content)
    return path


def cause(path: Path) -> str:
    with pytest.raises(GgufError) as caught:
        read_gguf(path)
    return caught.value.problem.cause


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_and_tensors_are_read_back_as_written(tmp_path: Path, version: int):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    content = gguf_bytes(
        {
            "a.int": 7,
            "a.float": 0.5,
            "a.bool": True,
            "a.text": "é",
            "a.texts": ["x", ""],
            "a.ints": [1, -2],
        },
        [plain_tensor("w", TensorKind.F32, values), plain_tensor("v", TensorKind.F16, values[0])],
        version=version,
    )

    gguf = read_gguf(write(tmp_path, content))

    assert gguf.metadata.integer("a.int") == 7
    assert gguf.metadata.number("a.float") == 0.5
    assert gguf.metadata.values["a.bool"] is True
    assert gguf.metadata.text("a.text") == "é"
    assert gguf.metadata.texts("a.texts") == ["x", ""]
    assert gguf.metadata.integers("a.ints") == [1, -2]
    assert gguf.tensors["w"].shape == (3, 4)
    assert np.array_equal(gguf.tensors["w"].raw.view("<f4"), values)
    assert np.array_equal(gguf.tensors["v"].raw.view("<f2")[0], values[0])


def test_tensors_are_read_with_the_files_alignment(tmp_path: Path):
    tensors = [
        plain_tensor(name, TensorKind.F32, np.full(3, value))
        for name, value in (("a", 1.0), ("b", 2.0))
    ]
    gguf = read_gguf(
        write(tmp_path, gguf_bytes({"general.alignment": 128}, tensors, alignment=128))
    )
    assert gguf.tensors["b"].raw.view("<f4").tolist() == [[2.0, 2.0, 2.0]]


def test_metadata_of_the_wrong_type_is_refused(tmp_path: Path):
    metadata = read_gguf(
        write(tmp_path, gguf_bytes({"n": 1, "t": "x", "mixed": [1.5]}, []))
    ).metadata
    for ask in (
        lambda: metadata.integer("t"),
        lambda: metadata.integer("absent"),
        lambda: metadata.number("t"),
        lambda: metadata.text("n"),
        lambda: metadata.texts("mixed"),
        lambda: metadata.integers("mixed"),
    ):
        with pytest.raises(GgufError, match="is missing or not"):
            ask()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "model.gguf is empty."),
        (b"PK\x03\x04 something else", "model.gguf is not a GGUF file."),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "of version 1; versions 2 and 3 can be read."),
        (b"GGUF\x03\x00", "model.gguf is truncated: its header ends after 6 bytes."),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "model.gguf is truncated"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0), "model.gguf is truncated"),
        (gguf_bytes({"split.count": 3}, []), "model.gguf is part 1 of 3; the parts can be"),
        (
            gguf_bytes({"general.alignment": 0}, []),
            "'general.alignment' is missing or not a positive",
        ),
        (TINY[:-100], "model.gguf is truncated: the tensor blk.1.ffn_down.weight ends at byte"),
    ],
)
def test_unreadable_file_is_refused_with_the_cause(tmp_path: Path, content: bytes, sentence: str):
    assert sentence in cause(write(tmp_path, content))


def test_missing_file_is_refused_with_the_cause(tmp_path: Path):
    assert cause(tmp_path / "none.gguf").endswith("can’t be read: No such file or directory.")


def test_unknown_quantisation_is_refused_with_the_known_ones(tmp_path: Path):
    content = bytearray(gguf_bytes({}, [plain_tensor("w", TensorKind.F32, np.zeros(4))]))
    kind_at = content.index(b"w") + 1 + 4 + 8
    content[kind_at : kind_at + 4] = struct.pack("<I", 19)
    assert cause(write(tmp_path, bytes(content))).startswith(
        "The tensor w has the format IQ1_S, which can’t be imported; possible are F32, F16, "
    )


def test_repeated_tensor_is_refused(tmp_path: Path):
    tensor = plain_tensor("w", TensorKind.F32, np.zeros(4))
    assert (
        cause(write(tmp_path, gguf_bytes({}, [tensor, tensor])))
        == "model.gguf holds the tensor w twice."
    )


def test_tensor_rows_with_incomplete_blocks_are_refused(tmp_path: Path):
    tensor = random_tensor("w", TensorKind.Q4_0, (2, 32), np.random.default_rng(0))
    content = bytearray(gguf_bytes({}, [tensor]))
    columns_at = content.index(b"w") + 1 + 4
    content[columns_at : columns_at + 8] = struct.pack("<Q", 31)
    assert "has a shape that Q4_0 can’t have" in cause(write(tmp_path, bytes(content)))


def test_nested_metadata_lists_are_refused(tmp_path: Path):
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k"
    content += struct.pack("<IIQ", 9, 9, 1)
    assert cause(write(tmp_path, content)) == "The metadata value 'k' is of the unknown type 9."


def assert_understood_or_refused(path: Path) -> None:
    cause = ""
    try:
        parts = plan_conversion(read_gguf(path)).parts
    except GgufError as error:
        parts, cause = (), error.problem.cause
    assert parts or cause


FUZZ = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
HEADER_BYTES = 12_000


@FUZZ
@given(end=st.integers(0, len(TINY)))
def test_truncated_file_is_read_or_raises_gguf_error(tmp_path: Path, end: int):
    assert_understood_or_refused(write(tmp_path, TINY[:end]))


@FUZZ
@given(
    changes=st.lists(
        st.tuples(st.integers(4, HEADER_BYTES), st.sampled_from([0, 1, 8, 9, 127, 255])),
        min_size=1,
        max_size=4,
    )
)
def test_damaged_header_is_read_or_raises_gguf_error(
    tmp_path: Path, changes: list[tuple[int, int]]
):
    content = bytearray(TINY)
    for position, value in changes:
        content[position] = value
    assert_understood_or_refused(write(tmp_path, bytes(content)))


@FUZZ
@given(garbage=st.binary(max_size=400))
def test_garbage_after_the_magic_is_read_or_raises_gguf_error(tmp_path: Path, garbage: bytes):
    assert_understood_or_refused(write(tmp_path, b"GGUF\x03\x00\x00\x00" + garbage))


def in_parts(place: Path, **changes: int) -> list[Path]:
    """Write three tensors into three files. changes replaces metadata of the second file."""
    paths = [place / f"big-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    for index, path in enumerate(paths):
        values = {"split.no": index, "split.count": 3, "split.tensors.count": 3}
        if index == 1:
            values |= {f"split.{key}": value for key, value in changes.items()}
        tensor = plain_tensor(f"w{index}", TensorKind.F32, np.full(4, index))
        path.write_bytes(gguf_bytes({**values, "general.name": f"part {index}"}, [tensor]))
    return paths


def test_any_part_of_a_divided_model_stands_for_all_parts(tmp_path: Path):
    paths = in_parts(tmp_path)
    for path in paths:
        gguf = read_gguf(path)
        assert gguf.paths == tuple(paths)
        assert gguf.metadata.text("general.name") == "part 0"
        assert gguf.num_bytes == sum(each.stat().st_size for each in paths)
        first = [tensor.raw.view("<f4")[0, 0] for tensor in gguf.tensors.values()]
        assert (list(gguf.tensors), first) == (["w0", "w1", "w2"], [0, 1, 2])


def test_missing_part_is_refused_with_its_name(tmp_path: Path):
    first, second, _ = in_parts(tmp_path)
    second.unlink()
    assert cause(first).endswith(
        "big-00002-of-00003.gguf can’t be read: No such file or directory."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"no": 0}, "big-00002-of-00003.gguf states that it is part 1 of 3, not 2 of 3."),
        ({"count": 5}, "big-00002-of-00003.gguf states that it is part 2 of 5, not 2 of 3."),
    ],
)
def test_part_of_another_model_is_refused(tmp_path: Path, changes: dict[str, int], sentence: str):
    assert cause(in_parts(tmp_path, **changes)[0]) == sentence


def test_lost_tensor_of_a_divided_model_is_refused(tmp_path: Path):
    paths = in_parts(tmp_path)
    values = {"split.no": 2, "split.count": 3}
    paths[2].write_bytes(gguf_bytes(values, []))
    assert cause(paths[0]) == "Its parts hold 2 tensors instead of 3."


def test_tensor_in_two_parts_is_refused(tmp_path: Path):
    paths = in_parts(tmp_path)
    tensor = plain_tensor("w0", TensorKind.F32, np.zeros(4))
    paths[2].write_bytes(gguf_bytes({"split.no": 2, "split.count": 3}, [tensor]))
    assert cause(paths[0]) == "big-00003-of-00003.gguf holds the tensor w0 again."


def test_name_of_too_many_parts_stands_for_one_file(tmp_path: Path):
    path = tmp_path / "big-00001-of-99999.gguf"
    assert part_paths(path) == (path,)
