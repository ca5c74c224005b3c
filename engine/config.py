"""Settings of the engine. The comment above each setting explains it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

# Share of a machine's memory that a model may take, if it is not known exactly. macOS gives a GPU
# about three quarters.
GIVEN_SHARE = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Limits on memory, prompt chunks, time slices and idle work of one engine."""

    # Folder with the files of Message.pictures. None: requests with pictures are refused.
    # It holds until Wanted.picture_folder is changed.
    picture_folder: Path | None = None
    # Fixed number of bytes for the prefix cache. None: the budget is the device's memory minus the
    # weights and head_room_bytes, and it shrinks while the machine is short of memory.
    cache_budget_bytes: int | None = None
    # Highest number of bytes for weights, cache and forward passes together. None: the GPU's
    # recommended working set.
    device_bytes: int | None = None
    # Number of bytes that the cache must leave free. They are for the arrays of a forward pass, for
    # the freed buffers that MLX keeps, and for the growth of running replies.
    head_room_bytes: int = 2 << 30
    # Number of bytes of freed buffers that MLX may keep for later use, as a share of the weights. A
    # pass needs less: 35 MB with weights of 538 MB. Other sizes only pile up, because MLX reuses a
    # buffer only for an array of nearly its size.
    freed_share: float = 1 / 8
    # Lower and upper limit of this number. The upper limit is part of head_room_bytes.
    least_freed_bytes: int = 64 << 20
    most_freed_bytes: int = 1 << 30
    # Seconds without a request after which an idle engine returns these buffers to the machine.
    release_after_s: float = 10.0
    # Estimated bytes for the arrays of one forward pass over cell_len tokens. The estimate covers
    # the activations of one layer, and the logits of 64 positions for a vocabulary of 250,000
    # tokens.
    pass_bytes: int = 512 << 20
    # Upper limit of the automatic cache budget. None: no limit.
    most_budget_bytes: int | None = None
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
    # Length of a cell in tokens. Prompts are cut into cells, always at multiples of this length. So
    # a prompt goes through the same forward passes, no matter how much of it is restored from the
    # cache. While one layer computes a cell, running answers must wait. On a CPU, a length of 256
    # halves this wait, and prompts are fed as fast as with 512.
    cell_len: int = 512 if sys.platform == "darwin" else 256
    # Number of tokens between two snapshots in a long prefill. After an edit inside a long
    # document, at most this many tokens before the edit are fed again.
    stride_len: int = 2048
    # Highest number of conversations that keep their own K/V buffers (live caches) after a reply.
    # The byte budget is usually reached before this number.
    max_hot: int = 16
    # Highest number of requests that are answered at the same time. Each one slows the others down.
    max_running: int = 8
    # Target for the longest pause, in seconds, between two tokens of an answer while another prompt
    # is being fed.
    max_gap_s: float = 0.2
    # True if each drawn token is fed before its id is read from the device. False: every decode
    # step waits for the previous step.
    looks_ahead: bool = True
    # True if the engine reads ahead and audits the cache while no request waits or runs, until
    # Wanted.idle_work is changed.
    idle_work: bool = True
    # Lowest number of seconds between two audits. An audit computes one cached state again and
    # compares the result with the cached state. Audits are rare, so that the fan stays quiet. An
    # idle engine runs only one audit: the next audit starts only after other work.
    audit_every_s: float = 600.0
    # Highest number of tokens that one audit may recompute. An audit of this length takes seconds.
    audit_max_tokens: int = 4096
    # True if the engine saves energy on battery power: it reads ahead only for the shown
    # conversation, reads no drafts and runs no audits.
    saves_battery: bool = True
    # Folder of the results of test passes (models/abilities.py). None: they are kept in the
    # process.
    abilities_folder: Path | None = None
    # Folder of cached state that survives a restart. None: nothing is kept on disk.
    disk_folder: Path | None = None
    # Largest size of this folder in bytes. None: the smaller of 20 GB and a tenth of the free
    # space.
    disk_budget_bytes: int | None = None
    # Highest number of bytes written to this folder on one day, for all models together. SSDs wear:
    # 40 GB a day are 150 TB after ten years, the endurance that makers state for small SSDs.
    disk_daily_bytes: int = 40 * 10**9
    # Seconds that a conversation must rest before its state is written, unless the state is
    # evicted.
    disk_rest_s: float = 60.0
    # Highest number of seconds for writing cached state when the app quits or the model is
    # unloaded.
    disk_close_s: float = 1.5
    # Number of bits per attention K/V value in the caches, 4 or 8. None: K/V are not quantised.
    kv_bits: int | None = None
    # Seconds without a request after which the model is unloaded, until Wanted.unload_after_s is
    # changed. The next request loads it again. None: the model stays loaded.
    unload_after_s: float | None = None
    # True if the engine uses the CPU even if the machine has a GPU. Used for checks on machines
    # where the GPU may give wrong results, such as a virtual GPU.
    on_cpu: bool = False
    # True if the engine loads the system's OpenBLAS on Linux. OpenBLAS is faster than the reference
    # BLAS in MLX's wheels. If results must be bit-exact, set this to False: with OpenBLAS, rounding
    # depends on how a prompt is cut into passes.
    use_openblas: bool = True
    # Seconds after which one piece of work counts as endless. Another engine thread then takes the
    # place of the blocked one. The longest sensible pieces (a cell of a huge prompt, a group of
    # weights from a slow disk) take seconds.
    blocked_after_s: float = 300.0

    def __post_init__(self) -> None:
        assert self.cell_len > 0
        assert self.stride_len % self.cell_len == 0
        assert self.max_hot > 0
        assert self.max_running > 0
        assert 0 <= self.scarce_memory <= self.ample_memory <= 1
        assert self.least_freed_bytes <= self.most_freed_bytes
        assert self.kv_bits in (None, 4, 8)
