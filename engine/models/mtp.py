"""Multi-token prediction heads (MTP) of Qwen3-Next, Qwen3.5 and Qwen3.6: one more layer of a model.

A head is a small network that was trained with its model. From the model's final hidden state after
token p - 1 and the embedding of token p, it predicts token p + 1 (DeepSeek-V3, arXiv 2412.19437,
section 2.2). So it can draft the next tokens of a reply:

    input       fc([norm(embedding of token p), norm(hidden state after token p - 1)])
    head        one attention layer over the inputs 1 ... p, then a norm; the result is h
    draft       drawn from the model's own LM head over h
    next draft  the same with the draft as token p + 1, and h as its hidden state

`ModelWithHead` runs a model and keeps the state of its head in one more cache object:

- The K/V of the head at position p come from input p. So after n tokens they have n positions, like
  the K/V of every other layer. Position 0 has no hidden state before it. Its K/V are computed from
  zeros and never attended to.
- The hidden state after the last token is state of a fixed size, like that of a recurrent layer.

So the cache restores, copies, evicts, stores and audits the state of the head like that of any
layer, and a restored conversation can draft at once. A pass over tokens computes only the K/V of
the head: the rest of the head runs for drafts alone. The head never changes the logits of its
model.

engine/models/mtp_files.py finds and loads the weights. Use on the engine thread.
"""

# mlx-lm and mlx.nn have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx_lm.models import qwen3_5, qwen3_next
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, make_prompt_cache
from typing_extensions import override

from engine.cache.trees import map_arrays
from engine.models.rewinding import note_input

# Function that draws a draft from its logits (V,), after some drafts of the same pass. The result
# and the drafts are lazy scalars.
DrawDraft = Callable[[mx.array, Sequence[mx.array]], mx.array]


@dataclass(frozen=True, slots=True)
class HeadState:
    """The state of the head for one conversation, after n tokens."""

    kv: Any  # K/V cache of mlx-lm with n positions, plain or quantised
    hidden: mx.array  # hidden state of the model after the last token, of shape (1, 1, H)
    shift: int = 0  # ConversationCaches.shift

    @property
    def arrays(self) -> list[object]:
        """The K/V buffers and the hidden state, as a tree of arrays."""
        return [self.kv.keys, self.kv.values, self.hidden]


class MtpHead(nn.Module):
    """The layers of a head. The names of its parameters are those of published weights."""

    def __init__(self, args: Any, layer: nn.Module) -> None:
        """Create a head with random weights.

        Args:
            args: the arguments of the model.
            layer: an attention layer of the model's class.
        """
        super().__init__()
        size, eps = args.hidden_size, args.rms_norm_eps
        self.pre_fc_norm_embedding = nn.RMSNorm(size, eps=eps)
        self.pre_fc_norm_hidden = nn.RMSNorm(size, eps=eps)
        self.fc = nn.Linear(2 * size, size, bias=False)
        self.layers = [layer]
        self.norm = nn.RMSNorm(size, eps=eps)

    def joined(self, embedded: mx.array, hidden: mx.array) -> mx.array:
        """Return the input of the layer, from embeddings and hidden states of shape (B, L, H)."""
        parts = [self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)]
        return self.fc(mx.concatenate(parts, axis=-1))

    def remember(self, joined: mx.array, kv: Any) -> None:
        """Append the K/V of inputs of shape (B, L, H), by the steps of Qwen3NextAttention."""
        layer: Any = self.layers[0]
        attention = layer.self_attn
        num_rows, num_tokens, _ = joined.shape
        shape = (num_rows, num_tokens, attention.num_key_value_heads, -1)
        x = layer.input_layernorm(joined)
        keys = attention.k_norm(attention.k_proj(x).reshape(*shape)).transpose(0, 2, 1, 3)
        values = attention.v_proj(x).reshape(*shape).transpose(0, 2, 1, 3)
        kv.update_and_fetch(attention.rope(keys, offset=kv.offset), values)

    @override
    def __call__(self, joined: mx.array, kv: Any) -> mx.array:
        """Append one position to the K/V, and return the head's result for it.

        joined: the input of one conversation, of shape (1, 1, H). The result has the same shape.
        """
        layer: Any = self.layers[0]
        return self.norm(layer(joined, None, _AfterFirst(kv)))


class _AfterFirst:
    """K/V of a head, without position 0 in what attention reads."""

    def __init__(self, kv: Any) -> None:
        self._kv = kv

    def __getattr__(self, name: str) -> Any:
        # The offset; the number of bits and the group size of quantised K/V.
        return getattr(self._kv, name)

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> Any:
        both = self._kv.update_and_fetch(keys, values)
        return map_arrays(lambda array: array[..., 1:, :], both)


class ModelWithHead(nn.Module):
    """A model and its head. It gives the logits and has the caches of the model, and one more.

    The last cache is a list of two: K/V, and an array with the last hidden state.
    """

    def __init__(self, model: nn.Module, head: MtpHead) -> None:
        super().__init__()
        self.model = model
        self.head = head

    def make_cache(self) -> list[object]:
        return [*make_prompt_cache(self.model), CacheList(KVCache(), ArraysCache(size=1))]

    @override
    def __call__(
        self, inputs: mx.array, cache: Sequence[Any], input_embeddings: mx.array | None = None
    ) -> mx.array:
        """Feed tokens of shape (B, L), and return the logits (B, L, V) of the model.

        input_embeddings: embeddings (B, L, H) that are fed in place of the tokens.
        """
        text = text_model_of(self.model)
        given = {} if input_embeddings is None else {"input_embeddings": input_embeddings}
        hidden = text.model(inputs, list(cache[:-1]), **given)
        kv, state = cache[-1].caches
        last = state.cache[0]
        if last is None:
            last = mx.zeros_like(hidden[:, :1])
        before = mx.concatenate([last, hidden], axis=1)
        note_input(before)
        embedded = text.model.embed_tokens(inputs) if input_embeddings is None else input_embeddings
        self.head.remember(self.head.joined(embedded, before[:, :-1]), kv)
        state.cache[0] = mx.contiguous(before[:, -1:])
        return _scored(text, hidden)

    def drafts(
        self, token_id: int, state: HeadState, num_drafts: int, draw: DrawDraft
    ) -> list[mx.array]:
        """Return drafts of the tokens after the newest token of a reply, as lazy scalars.

        Args:
            token_id: the newest token, which is not fed yet.
            state: the state of the head before this token. It is the same afterwards.
            num_drafts: number of drafts. The K/V must have room for as many positions.
            draw: function that draws each draft.
        """
        text, hidden, found = text_model_of(self.model), state.hidden, list[mx.array]()
        newest, num_tokens = mx.array([[token_id]]), state.kv.offset
        try:
            for _ in range(num_drafts):
                joined = self.head.joined(text.model.embed_tokens(newest), hidden)
                hidden = self.head(joined, state.kv)
                found.append(draw(_scored(text, hidden)[0, -1], found))
                newest = found[-1].reshape(1, 1)
        finally:
            state.kv.trim(state.kv.offset - num_tokens)
        return found


def text_model_of(model: Any) -> Any:
    """Return the part of a model that has the trunk (`model`) and the LM head."""
    return getattr(model, "language_model", model)


def can_have_head(model_class: type[nn.Module]) -> bool:
    """Return True if heads for this class of models are known."""
    return issubclass(model_class, qwen3_5.Model | qwen3_next.Model)


def make_head(model: nn.Module, *, num_experts: int) -> MtpHead:
    """Return a head for a model, with random weights. The model stays as it is.

    num_experts: number of experts of the head's layer. 0: the layer is dense.
    """
    # A layer may change its arguments, so it gets a copy.
    args = copy.deepcopy(text_model_of(model).args)
    args.num_experts = num_experts
    place = args.full_attention_interval - 1  # place of the first attention layer of the model
    if isinstance(model, qwen3_next.Model):
        args.mlp_only_layers, args.decoder_sparse_step = [], 1
        return MtpHead(args, qwen3_next.Qwen3NextDecoderLayer(args, place))
    return MtpHead(args, qwen3_5.DecoderLayer(args, place))


def _scored(text: Any, hidden: mx.array) -> mx.array:
    """Return the logits of final hidden states, as the model computes them."""
    if text.args.tie_word_embeddings:
        return text.model.embed_tokens.as_linear(hidden)
    return text.lm_head(hidden)
