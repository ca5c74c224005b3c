"""The names of transformers that Rejoinder and mlx-lm use. All others have no type.

The package imports all its models if types are checked: to read them took a third of the check.
"""

from typing import Any

class PreTrainedConfig: ...

def __getattr__(name: str) -> Any: ...
