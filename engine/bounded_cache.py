"""A cache of token ids for texts, bounded by bytes and not by entries.

functools.lru_cache bounds the number of entries. If the arguments are texts, one entry may take 100
bytes or half a megabyte, so a bound that is useful for short texts allows gigabytes of long ones.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

ENTRY_BYTES = 200  # estimated bytes of the key and the dictionary entry of one result
ID_BYTES = 36  # bytes of a token id in a tuple: the integer object and the reference


class BoundedCache(Generic[P, R]):
    """A function of texts whose most recently used results are kept. For one thread."""

    def __init__(
        self,
        function: Callable[P, R],
        num_ids_of: Callable[[R], int],
        max_bytes: int,
    ) -> None:
        """Create an empty cache.

        Args:
            function: the function to call. Its arguments must be hashable.
            num_ids_of: returns the number of token ids in a result.
            max_bytes: highest number of bytes to keep. A result that alone takes more than a
                quarter is not kept, because it would displace too many others.
        """
        self._function = function
        self._num_ids_of = num_ids_of
        self._max_bytes = max_bytes
        # Key: the arguments. Value: the result and its bytes. The least recently used comes first.
        self._entries: OrderedDict[Hashable, tuple[R, int]] = OrderedDict()
        self.held_bytes = 0  # sum of the bytes of all entries

    def __call__(self, *args: P.args, **options: P.kwargs) -> R:
        key = (args, *options.items())
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            return entry[0]
        result = self._function(*args, **options)
        num_bytes = ENTRY_BYTES + sum(map(sys.getsizeof, args))
        num_bytes += self._num_ids_of(result) * ID_BYTES
        if num_bytes <= self._max_bytes // 4:
            self._keep(key, result, num_bytes)
        return result

    def _keep(self, key: Hashable, result: R, num_bytes: int) -> None:
        self._entries[key] = result, num_bytes
        self.held_bytes += num_bytes
        while self.held_bytes > self._max_bytes:
            _, (_, freed_bytes) = self._entries.popitem(last=False)
            self.held_bytes -= freed_bytes
