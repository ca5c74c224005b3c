"""Kinds of hostile requests, by group. Each function returns one, chosen by a random generator."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.app.server.test_lying_bodies import BODIES, ITEMS
from tests.hostile_requests.bodies import BODIES_BY_PATH, HOSTILE_TEXT, with_text
from tests.hostile_requests.wire import KEY, Attack, End, head, headers, post

CHAT = "/v1/chat/completions"
_PATHS = [*BODIES_BY_PATH, "/v1/messages/count_tokens", "/api/show"]
_GETS = ["/v1/models", "/v1/models/tiny", "/metrics", "/api/version", "/api/tags", "/api/ps"]
_EVIL = "evil.example"
_SMUGGLED = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n"  # it has no key


def _hello(**more: Any) -> dict[str, Any]:
    """Return a body that all protocols answer with a token, at most."""
    question = [{"role": "user", "content": "Hi."}]
    limits = {"max_output_tokens": 1, "options": {"num_predict": 1}}
    return {
        "prompt": "Hi.",
        "input": "Hi.",
        "messages": question,
        "max_tokens": 1,
        **limits,
        **more,
    }


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _sent(body: bytes, path: str = CHAT, *more: tuple[str, str]) -> Attack:
    return Attack([post(path, body, *more)])


def _sizes(rng: random.Random) -> Attack:
    size = rng.choice([300, 30_000, 300_000])
    text = "fox " * size
    body = rng.choice(
        [
            lambda: b" " * rng.choice([size, 10 * size, 65_000_000]),
            lambda: _json(_hello(model=text)),
            lambda: _json(_hello(**{text: text})),
            lambda: _json(_hello(stop=[text] * 4)),
            lambda: _json(_hello(stop=["a"] * size)),
            lambda: _json(_hello(n=10 ** size.bit_length())),
            lambda: _json(_hello()).replace(b"1,", b"1" * min(size, 5_000) + b","),
            lambda: _json(_hello(seed=-(10**40), max_tokens=10**30)),
            lambda: _json(
                _hello(messages=[{"role": "system", "content": "a"}] * min(size, 30_000))
            ),
            lambda: _json(_hello(messages=[{"role": "user", "content": "fox " * 40 * size}])),
            lambda: _json(_hello(tools=[{"type": "function", "function": {"name": "a"}}] * 500)),
            lambda: _json({f"{number}": number for number in range(min(size, 100_000))}),
        ]
    )()
    return _sent(body, rng.choice(_PATHS))


def _depths(rng: random.Random) -> Attack:
    depth = rng.choice([50, 190, 210, 1_000, 100_000])
    deep = b"[" * depth + b"]" * depth
    objects = b'{"a":' * depth + b"1" + b"}" * depth
    field = rng.choice([b"messages", b"tools", b"input", b"prompt", b"options", b"metadata", b"x"])
    body = rng.choice(
        [
            deep,
            objects,
            b"[" * depth,
            b'{"%b": %b}' % (field, deep),
            b'{"%b": %b}' % (field, objects),
            _json(_hello()).replace(b'"Hi."', deep),
            _json(_hello())[:-1]
            + b', "tools": [{"type": "function", "function": {"name": "a", "parameters": %b}}]}'
            % objects,
        ]
    )
    return _sent(body, rng.choice(_PATHS))


def _encodings(rng: random.Random) -> Attack:
    text = json.dumps(_hello(), ensure_ascii=False).replace("Hi.", "naïve 天気 🚤")
    odd = rng.choice(
        ["\\ud800", "\\udfff\\ud800", "\\u0000", "\\ufeff", "\\uffff", "\\u202e", "\\u001b[2J"]
    )
    body = rng.choice(
        [
            text.encode("utf-16"),
            text.encode("utf-16-le"),
            text.encode("utf-16-be"),
            text.encode("utf-32"),
            text.encode("utf-8-sig"),
            text.encode().replace(b"na", b"\xff\xfe"),
            text.encode().replace(b"na", b"\xc0\xaf"),
            text.encode().replace(b"na", b"\xed\xa0\x80"),
            text.encode().replace(b"na", b"\x00"),
            text.replace("naïve", odd).encode(),
            text.replace("content", f"content{odd}").encode(),
            text.replace("user", f"user{odd}").encode(),
            text.replace("messages", f"messages{odd}").encode(),
            b'{"%b": 1, ' % odd.encode() + text.encode()[1:],
            text.encode() + b"\x00",
            text.encode() * 2,
            gzip.compress(text.encode()),
            text.replace(
                "1,", rng.choice(["NaN,", "Infinity,", "-0,", "1e400,", "0x1,", "1_0,"])
            ).encode(),
        ]
    )
    more = rng.choice(
        [
            ("content-encoding", "gzip"),
            ("content-type", "text/plain; charset=utf-7"),
            ("content-type", "multipart/form-data; boundary=a"),
            ("accept-encoding", "br"),
        ]
    )
    return _sent(body, rng.choice([CHAT, CHAT, *_PATHS]), more)


def _many_headers(rng: random.Random) -> Attack:
    body = _json(_hello())
    given = headers(len(body))
    number = rng.choice([10, 1_000, 20_000])
    request = rng.choice(
        [
            lambda: head("POST", CHAT, [*given, *((f"x-{i}", "a") for i in range(number))]) + body,
            lambda: head("POST", CHAT, [*given, ("x-long", "a" * number * 10)]) + body,
            lambda: head("POST", CHAT, [*given, ("y" * number, "a")]) + body,
            lambda: head("POST", CHAT, [*given, ("user-agent", b"\x7f\xff\x80 \t")]) + body,
            lambda: head("POST", CHAT, [*given, ("user-agent", "\x1b[2J" + "a" * number)]) + body,
            lambda: head("POST", CHAT, [*given, ("x y", "a")]) + body,
            lambda: head("POST", CHAT, [*given, ("", "a")]) + body,
            lambda: head("POST", CHAT, [*given, ("x", b"a\r\n b")]) + body,
            lambda: head("POST", CHAT, [*given, ("x", b"a\x00b")]) + body,
            lambda: head("POST", CHAT, [*given, ("x", b"a\rb")]) + body,
            lambda: head("POST", CHAT, [*given, ("expect", "100-continue")]) + body,
            lambda: (
                head("POST", CHAT, [*given, ("upgrade", "h2c"), ("connection", "upgrade")]) + body
            ),
            lambda: head("GET", "/v1/models", [*headers(), ("upgrade", "websocket")]),
            lambda: (
                head("POST", CHAT, given, rng.choice(["HTTP/1.0", "HTTP/9.9", "http/1.1", ""]))
                + body
            ),
            lambda: head("POST", CHAT + "?" + "a" * number, given) + body,
            lambda: head("A" * number, CHAT, given) + body,
            lambda: (
                head(
                    rng.choice(["TRACE", "CONNECT", "PUT", "DELETE", "PATCH", "post"]), CHAT, given
                )
                + body
            ),
            lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(500),
            lambda: rng.randbytes(number),
            lambda: b"\r\n" * number,
        ]
    )()
    return Attack([request], end=End.HALF)


def _framings(rng: random.Random) -> Attack:
    """Return a request whose body has two lengths, so that its rest may count as another request."""
    body = _json(_hello())
    base = headers()
    chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    length = ("content-length", str(len(body)))
    chunked = ("transfer-encoding", "chunked")
    parts = rng.choice(
        [
            [head("POST", CHAT, [*base, length, length]), body],
            [head("POST", CHAT, [*base, length, ("content-length", "0")]), body, _SMUGGLED],
            [head("POST", CHAT, [*base, ("content-length", f"{len(body)}, {len(body)}")]), body],
            [head("POST", CHAT, [*base, ("content-length", f"+{len(body)}")]), body],
            [head("POST", CHAT, [*base, ("content-length", "-1")]), body],
            [head("POST", CHAT, [*base, ("content-length", "1e3")]), body],
            [head("POST", CHAT, [*base, ("content-length", "9" * 30)]), body],
            [head("POST", CHAT, [*base, ("content-length", "4")]), body, _SMUGGLED],
            [head("POST", CHAT, [*base, length, chunked]), chunk, _SMUGGLED],
            [head("POST", CHAT, [*base, chunked, chunked]), chunk, _SMUGGLED],
            [head("POST", CHAT, [*base, ("transfer-encoding", "xchunked")]), chunk],
            [head("POST", CHAT, [*base, ("transfer-encoding", "chunked, identity")]), chunk],
            [head("POST", CHAT, [*base, ("transfer-encoding", "identity")]), body],
            [head("POST", CHAT, [*base, ("transfer-encoding ", "chunked")]), chunk],
            [head("POST", CHAT, [*base, ("transfer-encoding", b"\x0bchunked")]), chunk],
            [head("POST", CHAT, [*base, chunked]), b"-1\r\n", body],
            [head("POST", CHAT, [*base, chunked]), b"f" * 40 + b"\r\n", body],
            [head("POST", CHAT, [*base, chunked]), b"4;" + b"a" * 70_000 + b"\r\n", body],
            [head("POST", CHAT, [*base, chunked]), *([b"1\r\n \r\n"] * 3_000), b"0\r\n\r\n"],
            [head("POST", CHAT, [*base, chunked]), chunk[:-2], b"x: y\r\n" * 5_000, b"\r\n"],
            [head("GET", "/health", [("host", "localhost"), length]), body, _SMUGGLED],
            [_SMUGGLED * 50],
            [head("POST", CHAT, [("host", "localhost"), chunked]), chunk, _SMUGGLED],
        ]
    )
    return Attack(parts, end=End.HALF)


def _half_closed(rng: random.Random) -> Attack:
    body = _json(_hello(stream=rng.random() < 0.5, max_tokens=rng.choice([1, 300])))
    request = post(rng.choice([CHAT, "/v1/messages", "/v1/responses", "/api/chat"]), body)
    cut = rng.choice([len(request), rng.randrange(len(request))])
    return Attack([request[:cut]], end=rng.choice([End.HALF, End.GO, End.RESET]))


def _keys(rng: random.Random) -> Attack:
    name, value = rng.choice(
        [
            ("authorization", "Bearer wrong"),
            ("authorization", "Bearer "),
            ("authorization", "Bearer"),
            ("authorization", f"Bearer {KEY[:-1]}"),
            ("authorization", f"Bearer {KEY}x"),
            ("authorization", f"Bearer {KEY.upper()}"),
            ("authorization", f"Bearer  {KEY}\x00"),
            ("authorization", f"Basic {KEY}"),
            ("authorization", f"Bearer Bearer {KEY}"),
            ("authorization", KEY),
            ("authorization", "Bearer " + KEY * 1_000),
            ("authorization", "Bearer ключ"),
            ("x-api-key", "wrong"),
            ("x-api-key", ""),
            ("x-api-key", KEY * 2),
            ("api-key", KEY),
            ("cookie", f"key={KEY}"),
            ("proxy-authorization", f"Bearer {KEY}"),
            ("x-forwarded-for", "127.0.0.1"),
        ]
    )
    method, path = rng.choice([*(("POST", p) for p in _PATHS), *(("GET", p) for p in _GETS)])
    path += rng.choice(["", "", f"?key={KEY}", f"?api_key={KEY}"])
    body = _json(_hello(key=KEY)) if method == "POST" else b""
    given = [*headers(len(body), key=""), (name, value)]
    return Attack([head(method, path, given) + body], allowed=False)


def _path_tricks(rng: random.Random) -> Attack:
    target = rng.choice(_GETS)
    path = rng.choice(
        [
            f"/health/..{target}",
            f"/health/%2e%2e{target}",
            f"/health/..%2f{target[1:]}",
            f"/health;{target}",
            f"/health#{target}",
            f"/health%23{target}",
            f"/health%3f{target}",
            f"/health%00{target}",
            f"/health\\..{target}",
            f"/health{target}",
            f"/{target}",
            f"//localhost{target}",
            f"/.{target}",
            f"/%2e{target}",
            f"http://localhost{target}",
            f"http://{_EVIL}{target}",
            target.replace("/", "%2f"),
            target.upper(),
            f"{target}/",
            f"{target}/../../etc/passwd",
            "/../../../../etc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd",
            "/static/..%5c..%5cserver-key",
            f"*{target}",
            target[1:],
            "*",
            "",
            b"/\xff\xfe",
            "/" + "a/" * 20_000,
            "/v1/models/" + "%00" * 100,
        ]
    )
    method = rng.choice(["GET", "GET", "HEAD", "POST"])
    return Attack([head(method, path, headers(0, key=""))], allowed=False, end=End.HALF)


def _hosts(rng: random.Random) -> Attack:
    """Return a request with the right key, from a page or to a name that is not this server's."""
    host, origin = rng.choice(
        [
            (_EVIL, ""),
            (f"localhost.{_EVIL}", ""),
            (f"{_EVIL}:80", ""),
            (f"localhost@{_EVIL}", ""),
            (f"{_EVIL}@localhost", ""),
            (f"localhost, {_EVIL}", ""),
            (f"{_EVIL}/localhost", ""),
            (f"{_EVIL}#localhost", ""),
            (f"{_EVIL}\\localhost", ""),
            ("127.0.0.1." + _EVIL, ""),
            ("127.1", ""),
            ("2130706433", ""),
            ("0.0.0.0", ""),
            ("[::1", ""),
            ("[::ffff:127.0.0.1]", ""),
            ("", ""),
            ("localhost", f"https://{_EVIL}"),
            ("localhost", "null"),
            ("localhost", "http://localhost:3000"),
            ("localhost", "file://"),
            ("localhost", "http://localhost, app://obsidian.md"),
            ("localhost", "App://obsidian.md"),
            ("localhost", "app://obsidian.md/"),
            ("localhost", f"app://obsidian.md.{_EVIL}"),
        ]
    )
    method, path = rng.choice(
        [("POST", CHAT), ("GET", "/v1/models"), ("GET", "/health"), ("OPTIONS", CHAT)]
    )
    body = _json(_hello()) if method == "POST" else b""
    given = headers(len(body), host=host)
    if origin:
        given.append(("origin", origin))
    return Attack([head(method, path, given) + body], allowed=False)


def _control_tokens(rng: random.Random) -> Attack:
    path = rng.choice([*BODIES_BY_PATH])
    changed = [one for _, one in with_text(BODIES_BY_PATH[path], HOSTILE_TEXT)]
    return _sent(_json(rng.choice(changed)), path)


def _wrong_types(number: int, chosen: int) -> list[Attack]:
    """Return requests with values of any type, from the strategies of test_lying_bodies."""
    attacks: list[Attack] = []
    names = {"/v1/completions": "prompt", "/v1/responses": "input", "/api/generate": "prompt"}

    @seed(chosen)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    )
    @given(body=BODIES, items=ITEMS)
    def collect(body: dict[str, Any], items: list[dict[str, Any]]) -> None:
        path = _PATHS[len(attacks) % len(_PATHS)]
        options = body.get("options")
        limits: dict[str, Any] = {"max_tokens": 1, "max_output_tokens": 1}
        if options is None or isinstance(options, dict):
            limits["options"] = {**(options or {}), "num_predict": 1}
        attacks.append(_sent(_json({names.get(path, "messages"): items, **body, **limits}), path))

    collect()
    return attacks


_Kind = Callable[[random.Random], Attack]
_GROUPS: Mapping[str, _Kind] = {
    "size": _sizes,
    "depth": _depths,
    "encoding": _encodings,
    "headers": _many_headers,
    "framing": _framings,
    "half-closed": _half_closed,
    "key": _keys,
    "path": _path_tricks,
    "host, origin": _hosts,
    "control tokens": _control_tokens,
}


def make_attacks(number: int, chosen: int) -> dict[str, Sequence[Attack]]:
    """Return `number` requests by group. The same seed gives the same requests."""
    rng = random.Random(chosen)
    each = number // (len(_GROUPS) + 1)
    groups: dict[str, Sequence[Attack]] = {
        name: [kind(rng) for _ in range(each)] for name, kind in _GROUPS.items()
    }
    rest = number - each * len(_GROUPS)
    # Hypothesis may stop a little before its number of examples.
    types = _wrong_types(rest, chosen)
    return {**groups, "wrong types": types}
