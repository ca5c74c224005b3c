"""The types of models that are exact when they are divided into stages.

A type is listed if every cut that the trace allows gives the same bits as the whole model, and if
it can be cut at least once. Names are those of mlx-lm's modules. `python -m tests.architectures`
checks every type (column "over two stages"), and a test compares this list with the table.
"""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
    Klear afmoe apertus baichuan_m1 bailing_hybrid bailing_moe bailing_moe_linear bailing_moe_v3
    cohere cohere2 dbrx deepseek deepseek_v2 deepseek_v3 deepseek_v32 dots1 ernie4_5
    ernie4_5_moe exaone exaone4 exaone_moe falcon_h1 gear gemma gemma2 gemma3 gemma3_text gemma4
    gemma4_text glm glm4 glm4_moe glm4_moe_lite glm_moe_dsa gpt2 gpt_bigcode gpt_neox gpt_oss gptj granite
    granitemoe granitemoehybrid helium hunyuan hunyuan_v1_dense internlm2 internlm3 jamba
    kimi_k25 kimi_linear kimi_vl laguna lfm2 lfm2-vl lfm2_moe lille-130m llama llama4
    llama4_text longcat_flash mamba mamba2 mellum mimo mimo_v2_flash minicpm minicpm3 minimax
    minimax_m3_vl ministral3 mistral3 mistral4 mixtral muse_glimmer nanochat nemotron
    nemotron-nas nemotron_h olmo2 olmo3 olmo_hybrid olmoe openelm phi phi3 phi3small phimoe
    phixtral pixtral plamo plamo2 plamo3 prism_hadamard_qwen35 qwen qwen2 qwen2_moe qwen2_vl
    qwen3 qwen3_5 qwen3_5_moe qwen3_moe qwen3_next qwen3_vl qwen3_vl_moe recurrent_gemma rwkv7
    seed_oss smollm3 solar_open spark2_5 stablelm starcoder2 step3p5 talkie telechat3 youtu_llm
"""
EXACT_TYPES: Final = frozenset(_NAMES.split())
