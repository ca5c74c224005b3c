"""The access token and the address of the Hub, as huggingface_hub reads them. No connection here.

The token is in huggingface_hub's own file, which other programs share. Environment variables go
before the file and before the settings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from app.words import hub as words
from engine.errors import DiskError, UserFixableError
from engine.whole_file import part_of, write_whole

HOST: Final = "huggingface.co"
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,500}")
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


class AccessError(UserFixableError):
    """A token or an address cannot be used."""

    title = words.NOT_SET


def has_token_variable(environment: Mapping[str, str] = os.environ) -> bool:
    """Return True if an environment variable states the token."""
    return bool(environment.get("HF_TOKEN") or environment.get("HUGGING_FACE_HUB_TOKEN"))


def token_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the file in which huggingface_hub stores the token."""
    if path := environment.get("HF_TOKEN_PATH"):
        return Path(path).expanduser()
    if hf_home := environment.get("HF_HOME"):
        return Path(hf_home).expanduser() / "token"
    cache = environment.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "huggingface" / "token"


def has_token() -> bool:
    """Return True if a token is stored."""
    try:
        return token_file().stat().st_size > 0
    except OSError:
        return False


def store_token(token: str) -> None:
    """Store the token in huggingface_hub's file, which only its owner may read.

    Raises:
        AccessError: the text is no token.
        DiskError: the file cannot be written.
    """
    token = token.strip()
    if not _TOKEN.fullmatch(token):
        raise AccessError(words.NO_ACCESS_WORD, advice=words.ACCESS_PLACE)
    file = token_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(file, token.encode("ascii"))
    except OSError as error:
        raise DiskError(words.token_not_stored(error.strerror)) from error


def remove_token() -> None:
    """Remove the stored token, for other programs too.

    Raises:
        DiskError: the file cannot be removed.
    """
    try:
        for file in (token_file(), part_of(token_file())):
            file.unlink(missing_ok=True)
    except OSError as error:
        raise DiskError(words.token_not_stored(error.strerror)) from error


def mirror_address(text: str) -> str:
    """Return the address of a mirror as it is stored; "" for no mirror.

    Raises:
        AccessError: the text is no address, or the token would travel unencrypted.
    """
    text = text.strip().rstrip("/")
    if not text:
        return ""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise AccessError(words.NO_ADDRESS, advice=words.ADDRESS_FORM) from error
    is_plain = parts.scheme == "http" and host in _THIS_MACHINE
    if not host or port == 0 or parts.username or parts.query or not text.isprintable():
        raise AccessError(words.NO_ADDRESS, advice=words.ADDRESS_FORM)
    if parts.scheme != "https" and not is_plain:
        raise AccessError(words.NO_ADDRESS, advice=words.ADDRESS_FORM)
    return text


def host_of(mirror: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the name of the host to which requests go.

    Args:
        mirror: the address in the settings, "" for none.
        environment: the environment variables.
    """
    address = environment.get("HF_ENDPOINT") or mirror
    return (urlsplit(address).netloc or address) if address else HOST
