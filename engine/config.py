"""Settings of the engine. The comment above each setting explains it."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Limits on memory, prompt chunks, time slices and idle work of one engine."""

    # Fixed number of bytes for the prefix cache. With None the budget is automatic: the device's
    # memory minus the weights and head_room_bytes, or less while the machine is short of memory.
    cache_budget_bytes: int | None = None
    # Bytes for weights, cache and forward passes together. None: the GPU's recommended working set.
    device_bytes: int | None = None
    # Bytes that the cache must leave free: for the arrays of a forward pass, for buffers that MLX
    # has freed but keeps, and for replies that grow.
    head_room_bytes: int = 2 << 30
    # Number of bytes of freed buffers that MLX may keep for later use. They are part of
    # head_room_bytes.
    freed_buffers_bytes: int = 1 << 30
    # Estimated bytes for the arrays of one forward pass over cell_len tokens: the logits of 64
    # positions with a vocabulary of 250,000 tokens, and the activations of one layer.
    pass_bytes: int = 512 << 20
    # Lower limit of the automatic cache budget. It is enough for a few conversations.
    least_budget_bytes: int = 256 << 20
    # Seconds between two checks of the machine's available memory. The interval is short, so that
    # the cache soon shrinks when the user opens another program.
    memory_check_s: float = 5.0
    # The cache's budget shrinks while the available share of the machine's memory is below this
    # value. At this point macOS already compresses memory and will soon swap.
    scarce_memory: float = 0.1
    # The budget grows again while the available share of the machine's memory is at least this
    # value. The value is well above scarce_memory, so that the budget does not oscillate.
    ample_memory: float = 0.2
    # Share of the full budget that each memory check adds when the budget grows again. With 1/16
    # the budget regrows from zero in about 90 seconds.
    regrowth: float = 1 / 16
    # Prompts are cut into cells of this many tokens, always at the same positions. So a prompt goes
    # through the same forward passes, no matter how much of it is restored from the cache. Running
    # answers must wait while one layer computes a cell. On a CPU, cells of 256 tokens are fed as
    # fast as cells of 512, and the wait is half as long.
    cell_len: int = 512 if sys.platform == "darwin" else 256
    # Number of tokens between two snapshots in a long prefill. After an edit inside a long
    # document, at most this many tokens before the edit are fed again.
    stride_len: int = 2048
    # Number of conversations for which the live caches are kept after a reply. A higher number
    # costs only the unused capacity of more buffers. The byte budget is usually reached first.
    max_hot: int = 16
    # Highest number of requests that are answered at the same time. Each one slows the others down.
    max_running: int = 8
    # Target for the longest pause, in seconds, between two tokens of an answer while another prompt
    # is being fed.
    max_gap_s: float = 0.2
    # True if each drawn token is fed before its id is read from the device. False: every decode
    # step waits for the previous step.
    looks_ahead: bool = True
    # True if the engine reads ahead and audits the cache while no request waits or runs. The
    # SetIdleWork command changes this.
    idle_work: bool = True
    # Seconds between two audits. An audit recomputes the state at a resume point and compares it
    # with the stored state. Audits are rare, so that the fan stays quiet. After an audit, the next
    # one also waits until the engine has done other work.
    audit_every_s: float = 600.0
    # Length, in tokens, of the longest resume point that is audited. An audit of this length takes
    # seconds.
    audit_max_tokens: int = 4096
    # True if the engine saves energy on battery power: it reads ahead only for the shown
    # conversation, reads no drafts and runs no audits.
    saves_battery: bool = True
    # Number of bits per attention K/V value in the caches, 4 or 8. None: K/V are not quantised.
    kv_bits: int | None = None
    # True if the engine uses the CPU even if the machine has a GPU. For checks on machines where
    # the GPU may give wrong results, such as a virtual GPU.
    on_cpu: bool = False
    # Load the system's OpenBLAS on Linux, which is faster than the reference BLAS in MLX's wheels.
    # Set False where results must be bit-exact: only the reference BLAS sums in an order that does
    # not depend on how a prompt is cut.
    use_openblas: bool = True

    def __post_init__(self) -> None:
        assert self.cell_len > 0
        assert self.stride_len % self.cell_len == 0
        assert self.max_hot > 0
        assert self.max_running > 0
        assert 0 <= self.scarce_memory <= self.ample_memory <= 1
        assert self.kv_bits in (None, 4, 8)
