"""The token ids of a reply as they are kept: bytes, for thousands of replies are open and few are sent. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from engine.types import ReplyTokens

_TOKEN_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedReply:
    """ReplyTokens in a tenth of the memory.

    token_bytes holds 32 bits a token, unsigned, little endian on every machine: data folders move.
    """

    token_bytes: bytes
    answer_start: int
    tokenizer_hash: str

    @classmethod
    def pack(cls, reply: ReplyTokens) -> PackedReply:
        return cls(
            token_bytes=struct.pack(f"<{len(reply.token_ids)}I", *reply.token_ids),
            answer_start=reply.answer_start,
            tokenizer_hash=reply.tokenizer_hash,
        )

    def unpack(self) -> ReplyTokens:
        num_tokens = len(self.token_bytes) // _TOKEN_BYTES
        return ReplyTokens(
            token_ids=struct.unpack(f"<{num_tokens}I", self.token_bytes),
            answer_start=self.answer_start,
            tokenizer_hash=self.tokenizer_hash,
        )
