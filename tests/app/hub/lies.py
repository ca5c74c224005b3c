"""Answers of a Hub that lies, in six kinds. A kind is a function of a random generator."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import repeat
from pathlib import Path
from threading import Event
from typing import Any, cast

from tests.fakes.hub_server import git_hash
from tests.fakes.lying_hub import (
    Answerer,
    HonestHub,
    Request,
    file_answer,
    response,
)

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WEIGHTS = "model.safetensors"
_PIECE = bytes(1 << 16)
_ROW = b'{"rfilename":"a.json","size":1},'


def commits(chance: random.Random, outside: Path) -> Answerer:
    """Lie about the id of the commit and of the repository."""
    upwards = "../" * chance.randint(1, 8)
    value: object = chance.choice((
        "../../../../.zshenv",  # the home folder, seen from the folder of branches
        upwards + ".zshenv",
        upwards + "refs/main",
        "..\\.zshenv",
        "a/../../.zshenv",
        str(outside / ".zshenv"),
        f"{COMMIT}/../../../../.zshenv",
        f"{COMMIT}\n",
        f" {COMMIT}",
        COMMIT[:-1],
        COMMIT + "0",
        COMMIT.upper(),
        COMMIT.replace("0", "\u0660"),
        "main",
        "",
        ".",
        "..",
        "\0",
        None,
        0,
        True,
        [COMMIT],
        {"sha": COMMIT},
        "a" * 100_000,
    ))  # fmt: skip
    key = chance.choice(("sha", "sha", "sha", "id"))
    return HonestHub(lambda info: info.update({key: value}), "touch${IFS}owned")


def names(chance: random.Random, outside: Path) -> Answerer:
    """Lie about the names of files, in a description whose sizes and hashes are right."""
    suffix = chance.choice((".json", ".safetensors", ".gguf", ".txt"))
    bad = chance.choice((
        "../" * chance.randint(1, 9) + "owned" + suffix,
        str(outside / "owned") + suffix,
        f"..\\owned{suffix}",
        f"a\0{suffix}",
        f"a\n{suffix}",
        f"\x1b[2J{suffix}",
        f"\ud800{suffix}",
        f"CON{suffix}",
        suffix,
        "." + suffix,
        "a" * 300 + suffix,
        "a/" * 400 + suffix,
        f"a//b{suffix}",
        f"./a{suffix}",
        f"a/../../b{suffix}",
        f"MODEL{suffix}",
        f"Config{suffix}",
        f"a{suffix} ",
        f"~/a{suffix}",
        "",
        7,
        None,
        ["a.json"],
    ))  # fmt: skip
    content = b"owned"
    row = {"rfilename": bad, "size": len(content), "blobId": git_hash(content)}
    rows = [row] * chance.choice((1, 1, 1, 2, 20_000))

    def change(info: dict[str, object]) -> None:
        cast("list[object]", info["siblings"]).extend(rows)

    honest = HonestHub(change)

    def answer(request: Request) -> Iterable[bytes]:
        if "/resolve/" in request.path and "owned" in request.path:
            return file_answer(request, content)
        return honest(request)

    return answer


def bodies(chance: random.Random, outside: Path) -> Answerer:
    """Lie about sizes, hashes and the content of files."""
    size: object = chance.choice((0, 1, -1, 200_000, 1 << 40, 1 << 80, 1.5, "5", True, None, []))
    digest: object = chance.choice(("", "..", "../../x", str(outside / ".zshenv"), "0" * 64, None))
    changes: Mapping[str, Callable[[dict[str, Any]], object]] = {
        "size": lambda row: row.update(size=size),
        "lfs": lambda row: row["lfs"].update(sha256=digest),
        "blob": lambda row: (row.pop("lfs"), row.update(blobId=digest)),
        "nothing": dict,
    }
    change_row = changes[chance.choice((*changes, "nothing", "nothing"))]

    def change(info: dict[str, object]) -> None:
        for row in cast("list[dict[str, Any]]", info["siblings"]):
            if row["rfilename"] == WEIGHTS:
                change_row(row)

    honest = HonestHub(change)
    content = honest.repository.files[WEIGHTS]
    chunk = b"10000\r\n" + _PIECE + b"\r\n"
    wrong: list[Callable[[], Iterable[bytes]]] = [
        partial(response, repeat(_PIECE)),
        partial(response, repeat(_PIECE), 200, {"Content-Length": str(1 << 60)}),
        partial(response, repeat(_PIECE), 200, {"Transfer-Encoding": "chunked"}),
        partial(response, repeat(chunk), 200, {"Transfer-Encoding": "chunked"}),
        partial(response, repeat(_PIECE), 206),
        partial(response, repeat(_PIECE), 206, {"Content-Range": "bytes 5-9/10"}),
        partial(response, content[:-1]),
        partial(response, [content[:70_000]], 200, {"Content-Length": str(len(content))}),
        partial(response, [content], 200, {"Content-Length": "5"}),
        partial(response, [content], 200, {"Content-Length": "-5"}),
        partial(response, content[:-1] + b"x"),
        partial(response, content + b"x"),
        partial(response, b""),
        partial(response, b"", 416),
        partial(response, b"", 204),
        partial(response, content, 200, {"Content-Encoding": "gzip"}),
        partial(response, content),
    ]
    make_answer = chance.choice(wrong)

    def answer(request: Request) -> Iterable[bytes]:
        is_file = request.path.endswith(WEIGHTS) and request.method == "GET"
        return make_answer() if is_file else honest(request)

    return answer


def headers(chance: random.Random, outside: Path) -> Answerer:
    """Lie in the headers of all answers."""
    honest = HonestHub()
    places = (
        "file:///etc/passwd", "http://127.0.0.1:9/x", "//127.0.0.1:9/x", "/x", "", "\\\\host\\x",
        "http://[", "ftp://a/b", "http://user:word@127.0.0.1:9/", str(outside), "javascript:1",
        "?again", "http://127.0.0.1:99999/",
    )  # fmt: skip
    tags = ('".."', '"../../../.zshenv"', "", '""', f'"{outside}/x"', 'W/"a"', "x" * 60_000, '"\\"')
    extras: tuple[Mapping[str, str], ...] = (
        {"ETag": chance.choice(tags), "X-Linked-Etag": chance.choice(tags)},
        {"X-Repo-Commit": chance.choice(("../../x", "", "0" * 40, "touch /tmp/x"))},
        {"Content-Disposition": f"attachment; filename={chance.choice(tags)}"},
        {"X-Linked-Size": chance.choice(("-1", "x", "9" * 5000, str(1 << 70)))},
        {"Link": f"<{chance.choice(places)}>; rel=next", "Location": chance.choice(places)},
        {"Set-Cookie": "a=" + "b" * 50_000},
        {f"X-{number}": "y" * 900 for number in range(150)},
        {"Content-Encoding": chance.choice(("br", "gzip", "zstd", "x" * 900))},
    )
    extra = chance.choice(extras)
    status = chance.choice((200, 200, 301, 302, 307, 308, 304, 401, 403, 404, 408, 429, 500, 503))
    wait = chance.choice(("99999999", "9" * 400, "-1", "Wed, 21 Oct 2099 07:28:00 GMT", "\xb2"))
    if status in {301, 302, 307, 308}:
        extra = {**extra, "Location": chance.choice(places)}
    body = chance.choice((b"", b"{}", b"[" * 5000, repeat(_PIECE)))

    def answer(request: Request) -> Iterable[bytes]:
        if status == 200 and "/resolve/" in request.path:
            content = honest.repository.files.get(request.path.rpartition("/")[2], b"")
            return file_answer(request, content, extra)
        if status == 200:
            return response(json.dumps(honest.info).encode(), 200, extra)
        return response(body, status, {"Retry-After": wait, **extra})

    return answer


def answers(chance: random.Random, outside: Path) -> Answerer:
    """Lie in the answers of the API: endless, deep, of wrong types, with huge lists."""
    honest = HonestHub()
    oddities: list[object] = [
        *(None, True, -1, 1.5, 1 << 70, "x", "x" * 2_000_000, "\ud800", "\x1b[2J"),
        *([], [[]], {}, {"": None}, [None] * 100_000, [{}] * 300_000, "../../.zshenv"),
    ]
    odd = chance.choice(oddities)
    key = chance.choice((*honest.info, "gguf", "cardData", "__class__", "self"))
    rows = chance.choice((b"{},", b"[],", b'"",', b"0,", b'{"id":"a/b"},', _ROW))
    body = chance.choice((
        repeat(b" " * 65_536),
        b"[" + rows * 400_000 + b"0]",
        b'{"siblings":[' + _ROW * chance.choice((30_000, 500_000)) + b"{}]}",
        b"[" * chance.choice((1_000, 100_000, 5_000_000)),
        b'{"a":' * 100_000,
        b"9" * chance.choice((10, 5_000, 1_000_000)),
        b"<html>sign in</html>",
        b"\xff\xfe\x00",
        b"",
        b"NaN",
        b'"' + b"x" * 5_000_000 + b'"',
        json.dumps({**honest.info, key: odd}).encode(),
        json.dumps([{**honest.info, key: odd}] * chance.choice((1, 40))).encode(),
        json.dumps([odd] * 3).encode(),
    ))  # fmt: skip
    return lambda request: response(body) if request.path.startswith("/api/") else honest(request)


def silences(chance: random.Random, outside: Path) -> Answerer:
    """Be silent or slow, or break the connection, at a random place of a random answer."""
    honest = HonestHub()
    where = chance.choice(("/api/", "/resolve/", WEIGHTS))
    pause = Event()

    def trickle(parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            for letter in part:
                pause.wait(0.3)
                yield bytes([letter])

    def silent(parts: Iterable[bytes], num_bytes: int) -> Iterator[bytes]:
        yield b"".join(parts)[:num_bytes]
        pause.wait(30)

    how: Callable[[Iterable[bytes]], Iterable[bytes]] = chance.choice((
        lambda _: silent((), 0),
        lambda parts: silent(parts, chance.choice((1, 20, 100, 300, 100_000))),
        trickle,
        lambda _: (),
        lambda parts: (b"".join(parts)[: chance.choice((1, 100, 100_000))],),
        lambda _: (b"SSH-2.0-OpenSSH_9.6\r\n",),
        lambda _: (chance.randbytes(500),),
        lambda _: repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
        lambda _: (b"x-a: b\r\n" for _ in repeat(None)),
    ))  # fmt: skip

    def answer(request: Request) -> Iterable[bytes]:
        parts = honest(request)
        return how(parts) if where in request.path else parts

    return answer


KINDS: Mapping[str, Callable[[random.Random, Path], Answerer]] = {
    kind.__name__: kind for kind in (commits, names, bodies, headers, answers, silences)
}
