"""The compiled kernels against the same loops and steps in PyTorch's own operations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqcritic.models.gru import decoder, native_recurrence
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.recurrence import attended_scan, gated_scan
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.native.kernels import SWITCH, Kernels, kernels_for
from seqcritic.tensors import rows as all_rows
from seqcritic.tensors.packing import pack

SIZES = (1, 3, 17, 100)
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-14}
LENGTHS = torch.tensor([2, 6, 1, 0, 4])
MASK = torch.arange(6) < LENGTHS[:, None]
pytestmark = pytest.mark.skipif(kernels_for(torch.zeros(1)) is None, reason="no C compiler here")


def kernels(kind: torch.dtype = torch.float32) -> Kernels:
    found = kernels_for(torch.zeros(1, dtype=kind))
    assert found is not None
    return found


def numbers(*shape: int, kind: torch.dtype, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.randn(*shape, dtype=torch.float64, generator=generator) * scale).to(kind)


def gated(size: int, kind: torch.dtype) -> list[Tensor]:
    tokens = int(MASK.sum())
    return [
        numbers(2, tokens, 3 * size, kind=kind),
        numbers(2, 3 * size, size, kind=kind, scale=size**-0.5),
        numbers(2, 3 * size, kind=kind),
    ]


def attended(size: int, kind: torch.dtype, num_positions: int = 5) -> list[Tensor]:
    tokens, first = int(MASK.sum()), int((LENGTHS > 0).sum())
    memory_size, attention = size + 1, size + 2
    attention_bias = torch.zeros(len(LENGTHS), num_positions, dtype=kind)
    attention_bias[1, 3:] = -torch.inf
    return [
        numbers(tokens - first, 3 * size, kind=kind),
        numbers(size, kind=kind),
        numbers(len(LENGTHS), num_positions, memory_size, kind=kind),
        numbers(len(LENGTHS), num_positions, attention, kind=kind),
        attention_bias,
        numbers(3 * size + attention, size, kind=kind, scale=size**-0.5),
        numbers(3 * size + attention, kind=kind),
        numbers(attention, kind=kind, scale=attention**-0.5),
        numbers(3 * size, memory_size, kind=kind, scale=size**-0.5),
    ]


def run_gated(tensors: list[Tensor]) -> list[Tensor]:
    return [gated_scan(*tensors, pack(MASK))]


def run_attended(tensors: list[Tensor]) -> list[Tensor]:
    inputs, initial, *memory = tensors[:5]
    return list(attended_scan(pack(MASK), inputs, initial, tuple(memory), *tensors[5:]))


SCANS = {"gated": (gated, run_gated), "attended": (attended, run_attended)}


def results(run, tensors: list[Tensor]) -> list[Tensor]:
    """Return the outputs of a scan and the gradients of a weighted sum of them."""
    leaves = [tensor.detach().requires_grad_(bool(tensor.isfinite().all())) for tensor in tensors]
    outputs = run(leaves)
    loss = sum((output * numbers(*output.shape, kind=output.dtype, seed=7)).sum() for output in outputs)
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    return [output.detach() for output in outputs] + list(torch.autograd.grad(loss, wanted))


def assert_close(ours: list[Tensor], theirs: list[Tensor]) -> None:
    for our, their in zip(ours, theirs, strict=True):
        scale = max(1.0, float(their.abs().max()) if their.numel() else 1.0)
        assert (our - their).abs().le(TOLERANCE[our.dtype] * 5 * scale).all()


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scan", SCANS)
def test_a_scan_equals_the_one_in_pytorch_alone(scan, size, kind, monkeypatch):
    build, run = SCANS[scan]
    tensors = build(size, kind)
    ours = results(run, tensors)
    monkeypatch.setenv(SWITCH, "0")
    assert_close(ours, results(run, tensors))


@pytest.mark.parametrize("scan", SCANS)
def test_tensors_need_not_be_contiguous(scan):
    build, run = SCANS[scan]
    tensors = build(17, torch.float64)
    spread = [tensor.repeat_interleave(2, dim=-1)[..., ::2] for tensor in tensors]
    assert not spread[0].is_contiguous()
    assert_close(results(run, spread), results(run, tensors))


@pytest.mark.parametrize("scan", SCANS)
def test_what_is_not_a_number_comes_out(scan):
    build, run = SCANS[scan]
    for place, tensor in enumerate(build(17, torch.float32)):
        tensors = build(17, torch.float32)
        if bool(tensor.isinf().any()):
            continue  # the attention bias
        tensors[place].view(-1)[0] = torch.nan
        found = torch.cat([output.flatten() for output in run(tensors)])
        assert found.isnan().any(), f"NaN in tensor {place} is lost"
        assert not found.isnan().all(), f"NaN in tensor {place} is everywhere"


def test_the_switch_turns_the_kernels_off(monkeypatch):
    monkeypatch.setattr(native_recurrence.NativeGatedScan, "forward", None)
    with pytest.raises(TypeError):
        run_gated(gated(3, torch.float32))
    monkeypatch.setenv(SWITCH, "0")
    assert run_gated(gated(3, torch.float32))[0].isfinite().all()


def test_other_types_and_devices_have_no_kernels():
    assert kernels_for(torch.zeros(1, dtype=torch.bfloat16)) is None
    assert kernels_for(torch.zeros(1, device="meta")) is None


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("num_rows", [5, 1, 0])
def test_a_step_equals_the_one_in_pytorch_alone(num_rows, kind, monkeypatch):
    settings = GruActorSettings(embedding=7, hidden=17, attention=19, initial_range=None)
    actor = RecurrentActor(settings, 12, 12, torch.Generator().manual_seed(1)).to(kind)
    sources = torch.randint(12, (5, 6), generator=torch.Generator().manual_seed(2))
    tokens = torch.randint(12, (3, num_rows), generator=torch.Generator().manual_seed(3))
    used = []
    monkeypatch.setattr(decoder, "kernels_for", lambda tensor: used.append(1) or kernels_for(tensor))

    @torch.no_grad()
    def run() -> list[Tensor]:
        memory = actor.encode(sources, torch.arange(6) < LENGTHS.clamp(min=1)[:, None])
        rows = torch.arange(num_rows)
        states = [all_rows.select(actor.start(memory), rows)]
        for read in tokens:
            states.append(actor.step(all_rows.select(memory, rows), states[-1], read))
        kept = [states[1].gates.clone(), actor.step(all_rows.select(memory, rows), states[1], tokens[1]).hidden]
        assert torch.equal(kept[1], states[2].hidden), "a step changed the state it was given"
        return [field for state in states for field in state[:3]]

    ours = run()
    assert used
    monkeypatch.setenv(SWITCH, "0")
    assert_close(ours, run())


def test_a_row_depends_neither_on_its_neighbours_nor_on_its_address():
    rows, num_positions, size, memory_size = 5, 3, 19, 21
    keys, annotations = (
        numbers(rows, num_positions, size, kind=torch.float32),
        numbers(rows, num_positions, memory_size, kind=torch.float32),
    )
    queries, energy = numbers(rows, size, kind=torch.float32), numbers(size, kind=torch.float32)

    def attend(first: int, count: int, shift: int) -> Tensor:
        def placed(tensor: Tensor) -> Tensor:
            moved = torch.empty(tensor.numel() + shift)[shift:].view(tensor.shape)
            return moved.copy_(tensor)

        chosen = slice(first, first + count)
        arguments = [placed(keys[chosen]), placed(annotations[chosen]), torch.zeros(count, num_positions)]
        arguments.append(placed(queries[chosen]))
        rest = [torch.zeros(size), placed(energy), torch.empty(count, num_positions), torch.empty(count, memory_size)]
        kernels().attention_forward(
            count, num_positions, size, memory_size, None, *(tensor.data_ptr() for tensor in arguments), size,
            *(tensor.data_ptr() for tensor in rest),
        )  # fmt: skip
        return rest[-1]

    together = attend(0, rows, 0)
    for row in range(rows):
        for shift in range(5):
            assert torch.equal(attend(row, 1, shift)[0], together[row])
