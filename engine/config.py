"""Settings of the engine, each default with its reason."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Limits on memory, chunk lengths, time slices and idle work of one engine."""

    # Fixed number of bytes for the prefix cache. None: the device's memory less the weights
    # and head_room_bytes, and less while the machine is short of memory.
    cache_budget_bytes: int | None = None
    # Bytes for weights, cache and passes together. None: the device's recommended working set.
    device_bytes: int | None = None
    # Bytes kept out of the cache's budget, for a pass's arrays, freed buffers and growing replies.
    head_room_bytes: int = 2 << 30
    # Bytes of freed buffers that MLX keeps for the next pass. They are part of head_room_bytes.
    freed_buffers_bytes: int = 1 << 30
    # Estimated bytes for the arrays of a pass over a whole cell: the logits of 64 positions with a
    # vocabulary of 250,000 tokens, and the activations of one layer.
    pass_bytes: int = 512 << 20
    # Lower limit of the automatic cache budget, which fits a few conversations.
    least_budget_bytes: int = 256 << 20
    # Seconds between two checks of the machine's available memory: soon enough when the user opens
    # another program.
    memory_check_s: float = 5.0
    # The cache's budget shrinks while less than this share of the machine's memory is available:
    # macOS already compresses memory then, and soon swaps.
    scarce_memory: float = 0.1
    # The budget grows again while at least this share of the machine's memory is available. It is
    # well above scarce_memory, so that the budget does not oscillate.
    ample_memory: float = 0.2
    # Share of the full budget that is added at each check. A full regrowth takes about 90 seconds.
    regrowth: float = 1 / 16
    # Prompts are cut at multiples of cell_len tokens, so that a restored prompt and a cold one go
    # through the same passes. Running answers wait while one layer computes a cell. On a CPU cells
    # of 256 are read as fast as cells of 512, and a layer takes half as long.
    cell_len: int = 512 if sys.platform == "darwin" else 256
    # Tokens between two snapshots in a long prefill, so the most that an edit inside a document
    # makes the model read again.
    stride_len: int = 2048
    # Number of conversations whose live caches are kept after their replies. A higher number costs
    # only the spare room in more buffers; the byte budget is usually reached first.
    max_hot: int = 16
    # Number of requests answered at the same time: each additional request slows the others down.
    max_running: int = 8
    # Approximate limit of seconds between two tokens of an answer while another prompt is read.
    max_gap_s: float = 0.2
    # Feed a drawn token before its id is read. False: every decode step waits for the previous one.
    looks_ahead: bool = True
    # Read ahead and audit while no request waits or runs. The SetIdleWork command changes this.
    idle_work: bool = True
    # Seconds between two audits. An audit recomputes the state at a resume point and compares it
    # with the stored state. Audits are rare, so that the fan stays quiet, and run only after other
    # work.
    audit_every_s: float = 600.0
    # Tokens of the longest resume point that is audited, which takes seconds to recompute.
    audit_max_tokens: int = 4096
    # On battery, read ahead only for the shown conversation, read no drafts and run no audits.
    saves_battery: bool = True
    # Bits of each attention K/V value in the caches, 4 or 8. None: K/V are not quantised.
    kv_bits: int | None = None
    # Compute on the CPU even if the machine has a GPU: for checks where the GPU cannot be trusted.
    on_cpu: bool = False
    # Load the system's OpenBLAS on Linux. False where results must be bit-exact: the reference BLAS
    # of MLX's wheels is slower, but its order of summation does not depend on how a prompt is cut.
    use_openblas: bool = True

    def __post_init__(self) -> None:
        assert self.cell_len > 0
        assert self.stride_len % self.cell_len == 0
        assert self.max_hot > 0
        assert self.max_running > 0
        assert 0 <= self.scarce_memory <= self.ample_memory <= 1
        assert self.kv_bits in (None, 4, 8)
