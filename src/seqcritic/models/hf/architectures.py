"""Which architectures have a step of our own (decoder.py), and where their weights stand in the library's modules.

An architecture that is not in the tables, or a module that is not the usual one, as a quantised layer, is run by the
library itself. Adapters are added to the weights that they stand beside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

import torch
from peft.tuners.lora import Linear as AdaptedLinear
from torch import Tensor, nn

from seqcritic.models.hf.decoder import Decoder, Layer, Linear, Norm
from seqcritic.models.hf.layers import NarrowLinear

# Of exactly these types: a quantised or otherwise derived layer does not multiply by its `weight` alone.
USUAL = (nn.Linear, NarrowLinear)
# By config.model_type: heads that are one product, those with an own row of biases, and T5, which may scale.
PLAIN_HEADS = ("m2m_100", "whisper", "mt5", "gpt2", "llama", "qwen2", "mistral", "opt", "bloom")
BIASED_HEADS = ("bart", "mbart", "marian", "pegasus", "led")


class Head(NamedTuple):
    """The linear layer of a model's logits, of hidden states that are scaled before."""

    weight: Tensor  # [V, H]
    bias: Tensor | None  # [V]
    scale: float


def read_head(headed: Any) -> Head | None:
    """Return the head of a model; None: it does more than this, or is not known."""
    layer, family = headed.get_output_embeddings(), headed.config.model_type
    if type(layer) not in USUAL:
        return None
    if family in BIASED_HEADS:
        return Head(layer.weight, headed.final_logits_bias[0], 1.0)
    if family in PLAIN_HEADS:
        return Head(layer.weight, layer.bias, 1.0)
    if family == "t5":
        return Head(layer.weight, layer.bias, headed.model_dim**-0.5 if headed.config.scale_decoder_outputs else 1.0)
    return None


class OwnStep:
    """Makes the decoder of a model, with its weights as they are then, once for all who hold it.

    It is not held here: a memory lives until the update is over, and prepared weights should not.
    """

    def __init__(self, model: Any, never: Tensor) -> None:
        """Take a model, and what is added to its logits, [V]."""
        self._model, self._never = model, never
        self._made: Callable[[], Decoder | None] = lambda: None

    def decoder(self) -> Decoder | None:
        """Return it; None: the library steps."""
        made = self._made()
        if made is None:
            made = read_decoder(self._model, self._never)
            # Weak: it is gone with the last state or search that goes on by it.
            self._made = (lambda: None) if made is None else ref(made)
        return made


@torch.no_grad()
def read_decoder(model: Any, never: Tensor) -> Decoder | None:
    """Return the decoder of an encoder-decoder with its weights as they are now; None: its library runs it.

    `never` [V] is added to all logits.
    """
    read, head = DECODERS.get(model.config.model_type), read_head(model)
    if read is None or head is None:
        return None
    bias = never if head.bias is None else head.bias + never
    try:
        return read(model.get_decoder(), Linear(head.weight, bias).prepared(), head.scale)
    except _UnusualError:
        return None


class _UnusualError(Exception):
    """A module that is not what its architecture has by itself."""


def _linear(module: Any) -> Linear:
    """Return a layer's weights, with those of its adapters."""
    base, added = module, None
    # A variant, as DoRA, is more than W + ΔW; it falls through to the check below and is left to the library.
    if isinstance(module, AdaptedLinear) and not module.lora_variant:
        base = module.get_base_layer()
        # A sum as one's own: adapters are then part of every product, without two small ones beside it.
        added = sum(module.get_delta_weight(name) for name in module.active_adapters)
    if type(base) not in USUAL:
        raise _UnusualError
    return Linear(base.weight if added is None else base.weight + added, base.bias)


def _prepared(module: Any) -> Linear:
    return _linear(module).prepared()


def _vectors(module: Any) -> Tensor:
    if not isinstance(module, nn.Embedding):
        raise _UnusualError
    return module.weight


def _fused(queries: Linear, keys: Linear, values: Linear) -> Linear:
    """Return one layer that does the work of three; Whisper's keys alone have no bias."""
    parts = (queries, keys, values)
    weight = torch.cat([part.weight for part in parts])
    if queries.bias is None:
        return Linear(weight, None).prepared()
    biases = [weight.new_zeros(len(part.weight)) if part.bias is None else part.bias for part in parts]
    return Linear(weight, torch.cat(biases)).prepared()


def _norm(module: Any) -> Norm:
    return Norm(module.weight, module.bias, module.eps)


def _root_mean_square(module: Any) -> Norm:
    return Norm(module.weight, None, module.variance_epsilon, centred=False)


@dataclass(frozen=True)
class BartKin:
    """What reads BART and its kin, which differ in where they have norms, in positions, and in who scales vectors."""

    norm_first: bool
    entry_norm: bool
    positions: Callable[[Any], Tensor]
    scale: Callable[[Any], float]

    def __call__(self, body: Any, head: Linear, head_scale: float) -> Decoder:
        """Return the decoder of a stack of layers."""
        heads = body.layers[0].self_attn
        return Decoder(
            vectors=_vectors(body.embed_tokens),
            scale=self.scale(body),
            positions=self.positions(body.embed_positions),
            entry_norm=_norm(body.layernorm_embedding) if self.entry_norm else None,
            layers=tuple(_bart_layer(layer) for layer in body.layers),
            # Where norms come first the last sum is not normalised by a layer: the stack does it.
            exit_norm=_norm(body.layer_norm) if self.norm_first else None,
            norm_first=self.norm_first,
            num_heads=heads.num_heads,
            attention_scale=heads.head_dim**-0.5,
            distance_bias=None,
            head=head,
            head_scale=head_scale,
        )


def _bart_layer(layer: Any) -> Layer:
    own, cross = layer.self_attn, layer.encoder_attn
    return Layer(
        norms=(
            _norm(layer.self_attn_layer_norm),
            _norm(layer.encoder_attn_layer_norm),
            _norm(layer.final_layer_norm),
        ),
        own=_fused(_linear(own.q_proj), _linear(own.k_proj), _linear(own.v_proj)),
        own_out=_prepared(own.out_proj),
        query=_prepared(cross.q_proj),
        cross_out=_prepared(cross.out_proj),
        widen=_prepared(layer.fc1),
        gate=None,
        narrow=_prepared(layer.fc2),
        activation=layer.activation_fn,
    )


def _t5(body: Any, head: Linear, head_scale: float) -> Decoder:
    heads = body.block[0].layer[0].SelfAttention

    # The first layer alone has a table of distances, which all others use.
    def bias(length: int) -> Tensor:
        found: Tensor = heads.compute_bias(1, length, past_seen_tokens=length - 1)
        return found[0, :, 0]

    return Decoder(
        vectors=_vectors(body.embed_tokens),
        scale=1.0,
        positions=None,
        entry_norm=None,
        layers=tuple(_t5_layer(block.layer, body.config.is_gated_act) for block in body.block),
        exit_norm=_root_mean_square(body.final_layer_norm),
        norm_first=True,
        num_heads=heads.n_heads,
        attention_scale=1.0,  # T5 does not scale: its initial weights are that much smaller
        distance_bias=bias,
        head=head,
        head_scale=head_scale,
    )


def _t5_layer(blocks: Any, gated: bool) -> Layer:
    own, cross, dense = blocks[0].SelfAttention, blocks[1].EncDecAttention, blocks[2].DenseReluDense
    first, second, third = (_root_mean_square(block.layer_norm) for block in blocks)
    return Layer(
        norms=(first, second, third),
        own=_fused(_linear(own.q), _linear(own.k), _linear(own.v)),
        own_out=_prepared(own.o),
        query=_prepared(cross.q),
        cross_out=_prepared(cross.o),
        widen=_prepared(dense.wi_0 if gated else dense.wi),
        gate=_prepared(dense.wi_1) if gated else None,
        narrow=_prepared(dense.wo),
        activation=dense.act,
    )


DECODERS: dict[str, Callable[[Any, Linear, float], Decoder]] = {
    "bart": BartKin(
        norm_first=False,
        entry_norm=True,
        # The first rows of the table are not used: position 0 stands behind them.
        positions=lambda table: table.weight[table.offset :],
        scale=lambda body: body.embed_tokens.embed_scale,
    ),
    "mbart": BartKin(
        norm_first=True,
        entry_norm=True,
        positions=lambda table: table.weight[table.offset :],
        scale=lambda body: body.embed_tokens.embed_scale,
    ),
    "marian": BartKin(
        norm_first=False,
        entry_norm=False,
        positions=lambda table: table.weight,
        scale=lambda body: body.embed_scale,
    ),
    "pegasus": BartKin(
        norm_first=True,
        entry_norm=False,
        positions=lambda table: table.weight,
        scale=lambda body: body.embed_scale,
    ),
    "m2m_100": BartKin(
        norm_first=True,
        entry_norm=False,
        # Positions count from behind the id of padding, as in fairseq.
        positions=lambda table: table.weights[table.padding_idx + 1 :],
        scale=lambda body: body.embed_tokens.embed_scale,
    ),
    "whisper": BartKin(
        norm_first=True,
        entry_norm=False,
        positions=lambda table: table.weight,
        # Its decoder has an embed_scale and does not use it.
        scale=lambda body: 1.0,
    ),
    "t5": _t5,
    "mt5": _t5,
}
