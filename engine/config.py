"""Engine settings: frozen, every default with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """How the engine uses the machine."""

    # Bytes the prefix cache may hold; None: what the device reports, less weights and head room.
    cache_budget_bytes: int | None = None
    # Prompts are cut at multiples of this many tokens, so that a hit and a cold run are cut alike.
    cell_len: int = 512
    # In long prefills a snapshot is kept this often: an edit inside a document re-reads at most this.
    stride_len: int = 2048
    # Live caches kept per conversation. More cost only head room; the byte budget binds first.
    max_hot: int = 16
    # False on Linux when results must be bit-exact: the reference BLAS sums in one order.
    use_openblas: bool = True

    def __post_init__(self) -> None:
        assert self.cell_len > 0
        assert self.stride_len % self.cell_len == 0
        assert self.max_hot > 0
