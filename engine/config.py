"""Engine settings: frozen, every default with its reason."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """How the engine uses the machine."""

    # Bytes the prefix cache may hold, whatever happens; None: what the device has to spare, and less
    # while the machine is short of memory.
    cache_budget_bytes: int | None = None
    # Bytes that all of the engine may use; None: what the device recommends.
    device_bytes: int | None = None
    # Not the cache's: a pass's own arrays, freed buffers, a reply that grows.
    head_room_bytes: int = 2 << 30
    # Of the head room: what MLX keeps after use, so that a pass finds the buffers of the one before.
    freed_buffers_bytes: int = 1 << 30
    # A pass over a whole cell: the logits of 64 positions for 250,000 tokens, one layer's activations.
    pass_bytes: int = 512 << 20
    # A machine with little to spare still keeps a few conversations.
    least_budget_bytes: int = 256 << 20
    # The machine's memory is looked at this often: soon enough for a person who opens another program.
    memory_check_s: float = 5.0
    # With a smaller share available than this macOS has begun to compress and soon swaps.
    scarce_memory: float = 0.1
    # From this share on the budget grows again; well above, so that it does not swing.
    ample_memory: float = 0.2
    # By this share of the whole a look: all of it is back after a minute and a half.
    regrowth: float = 1 / 16
    # Prompts are cut at multiples of this many tokens, so that a hit and a cold run are cut alike. Running
    # answers wait for a layer over so many: a CPU reads as fast by 256, and a layer takes half as long.
    cell_len: int = 512 if sys.platform == "darwin" else 256
    # In long prefills a snapshot is kept this often: an edit inside a document re-reads at most this.
    stride_len: int = 2048
    # Live caches kept per conversation. More cost only head room; the byte budget binds first.
    max_hot: int = 16
    # Requests answered at the same time: each one more costs the others a part of their speed.
    max_running: int = 8
    # While a prompt is read, the running answers wait for their next tokens no longer than this, about.
    max_gap_s: float = 0.2
    # Feed a token before it is read; off, every step waits for the one before.
    looks_ahead: bool = True
    # Read ahead while nobody waits; SetIdleWork changes it later.
    idle_work: bool = True
    # After work, this long since the last time, a stored point is computed anew and compared: rarely
    # enough that nobody hears the fan for it, and only up to a length that takes seconds.
    audit_every_s: float = 600.0
    audit_max_tokens: int = 4096
    # On battery only for the conversation that is shown, and no drafts.
    saves_battery: bool = True
    # Bits of quantised attention K/V (4 or 8); None: as the model computes them.
    kv_bits: int | None = None
    # Compute on the CPU although there is a GPU: for checks on machines whose GPU cannot be trusted.
    on_cpu: bool = False
    # False on Linux when results must be bit-exact: the reference BLAS sums in one order.
    use_openblas: bool = True

    def __post_init__(self) -> None:
        assert self.cell_len > 0
        assert self.stride_len % self.cell_len == 0
        assert self.max_hot > 0
        assert self.max_running > 0
        assert 0 <= self.scarce_memory <= self.ample_memory <= 1
        assert self.kv_bits in (None, 4, 8)
