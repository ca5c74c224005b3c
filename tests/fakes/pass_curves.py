"""Duration of a pass by its number of tokens on several devices, in passes of one token.

Sources: measurements of mlx#3791 (M5 Max, 70B 4-bit), mlx#3839 (M4 Pro, 4-bit linears), vllm-mlx#763
(30B-A3B) and mlx#3764 (before M3).
"""

from __future__ import annotations

CURVES = {
    "M5 Max": (1, 1.06, 1.11, 1.26, 1.42, 1.67, 1.93, 2.2),
    "M4 Pro": (1, 1.1, 1.3, 1.45, 1.7, 1.95, 2.2, 2.45),
    "MoE": (1, 1.59, 1.85, 2.15, 2.44, 2.73, 3.02, 3.32),
    "before M3": (1, 1.83, 2.55, 3.26, 3.9, 4.6, 5.28, 6.12),
}
