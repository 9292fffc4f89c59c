"""Calls into the library that go round its own ways: caches of plain tensors, and a head without its body."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache
from transformers.modeling_outputs import BaseModelOutput, BaseModelOutputWithPastAndCrossAttentions

from seqcritic.models import products
from seqcritic.models.hf.architectures import read_head
from seqcritic.models.hf.decoder import KeysAndValues


def cache_of(pairs: KeysAndValues) -> DynamicCache:
    """Return a cache of these keys and values; made without a config, whose layers may be the encoder's, or cropped."""
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(pairs):
        cache.update(keys, values, layer)
    return cache


def pairs_of(cache: Any) -> KeysAndValues:
    """Return the keys and values of a cache."""
    return tuple((layer.keys, layer.values) for layer in cache.layers)


def say(headed: Any, body: nn.Module, hidden: Tensor, never: Tensor) -> Tensor:
    """Return logits [N, V] of hidden states [N, H] with `never` [V] added: one product where the head is known."""
    head = read_head(headed)
    if head is None:
        return run_head(headed, body, hidden) + never
    bias = never if head.bias is None else head.bias + never
    # As T5 does it, on the states: a factor on the weights would have to be made anew whenever they change.
    scaled = hidden if head.scale == 1 else hidden * head.scale
    return products.linear(scaled, head.weight, bias)


def run_head(headed: Any, body: nn.Module, hidden: Tensor) -> Tensor:
    """Return logits [N, V] by the head, with all that its model does before and after it, of hidden states [N, H].

    T5 scales what its head reads, Marian adds a bias, Gemma caps: all that stands in the model's own forward pass, so
    that runs, with the states in place of what its body would return.
    """
    answer = BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=hidden[:, None])
    # Any tokens: what they say is not looked at, since the body returns the answer whatever it reads.
    ids = torch.zeros(len(hidden), 1, dtype=torch.int64, device=hidden.device)
    given: dict[str, Any] = {"input_ids": ids}
    if headed.config.is_encoder_decoder:
        given = {"decoder_input_ids": ids, "encoder_outputs": BaseModelOutput(last_hidden_state=hidden[:, None])}
    with _returning(body, answer):
        logits: Tensor = headed(**given, use_cache=False).logits[:, 0]
    return logits


@contextmanager
def _returning(module: nn.Module, answer: Any) -> Iterator[None]:
    """Let a module return an answer whatever it is called with."""
    # An attribute of the object hides the class's method, of this one module alone.
    module.forward = lambda *arguments, **named: answer
    try:
        yield
    finally:
        del module.forward  # the class's own is found again
