"""Where and how precisely a run computes: the choice, narrow products, and no tensor that forgets its device."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

import seqcritic
from seqcritic.data.task import build_task
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import build_score
from seqcritic.settings.io import load_recipe
from seqcritic.training.device import choose_device, describe_precision, weight_type
from seqcritic.training.learner import Learner, recipe_learner
from support import METHODS, Refusal, method_overrides

SOURCE = Path(seqcritic.__file__).parent
CREATORS = {
    "arange",
    "empty",
    "eye",
    "full",
    "linspace",
    "ones",
    "rand",
    "randint",
    "randn",
    "randperm",
    "tensor",
    "zeros",
}


def learner_of(recipe: Path, *overrides: str) -> tuple[Learner, object]:
    settings = load_recipe(recipe, overrides)
    task = build_task(settings.data)
    score = build_score(settings)
    learner = recipe_learner(settings, task.codec.num_source_tokens, task.codec.num_target_tokens, score)
    learner.start_phase("train")
    return learner, task


def gradients(recipe: Path, label: str, precision: str) -> torch.Tensor:
    """Return the gradients of actor and critic at the first update of a method, as one vector."""
    sizes = ["actor.initial_range=0.3", "critic.initial_range=0.3", "training.clip_norm=null"]
    learner, task = learner_of(recipe, *method_overrides(label), *sizes, f"precision={precision}")
    measured = learner.update(task.training_batch(0, 32, 1), 1e-3)
    assert all(isinstance(value, float) for value in measured.values())
    trained = [name for name in learner.optimisers if name != "baseline"]
    parameters = [parameter for name in trained for parameter in getattr(learner.networks, name).parameters()]
    assert {parameter.dtype for parameter in parameters} == {torch.float64 if precision == "float64" else torch.float32}
    return torch.cat([parameter.grad.double().flatten() for parameter in parameters])


@pytest.mark.parametrize("label", METHODS)
def test_narrow_products_lead_in_the_same_direction(label: str, recipe: Path):
    exact, single, narrow = (gradients(recipe, label, kind) for kind in ("float64", "float32", "bfloat16"))
    assert (single - exact).norm() < 1e-4 * exact.norm()
    assert (narrow - exact).norm() > 5e-4 * exact.norm(), "the products were not narrow"
    # A few samples may end at another token, because a probability differs in its third digit; and an untrained actor
    # decodes among candidates that are nearly equal, so that digit also chooses other pairs of them.
    assert torch.cosine_similarity(narrow, exact, dim=0) > (0.7 if label == "direct-loss" else 0.9)
    if label not in ("direct-loss", "beam-search-optimization"):  # which tokens they move depends on their search
        assert bool(((narrow != 0) | (exact.abs() < 1e-3 * exact.abs().max())).all()), "a weight has lost its gradient"


def test_a_run_in_bfloat16_trains_and_its_model_is_single_precision(recipe: Path, tmp_path: Path):
    from seqcritic.training.model import load_model
    from support import SHORT, train_here

    folder = train_here(recipe, tmp_path / "run", *SHORT, "precision=bfloat16")
    assert load_model(folder).actor.decoder.initial.dtype == torch.float32


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_devices_that_are_not_there_are_refused(recipe: Path, tmp_path: Path, finished_run: Path, refusal: Refusal):
    assert choose_device("auto") == torch.device("cpu")
    assert "no CUDA device" in refusal("train", recipe, "--out", tmp_path / "run", "device=cuda")
    assert "no CUDA device" in refusal("evaluate", finished_run, "--device", "cuda")


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [choose_device("auto", rank) for rank in range(2)] == [torch.device("cuda", rank) for rank in range(2)]
    with pytest.raises(UserError, match="3 processes on this machine, but 2 CUDA"):
        choose_device("cuda", 2)


def test_devices_say_what_they_cannot_compute(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(UserError, match="no float64"):
        weight_type("float64", torch.device("mps"))
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    with pytest.raises(UserError, match="no bfloat16"):
        weight_type("bfloat16", torch.device("cuda"))


def test_a_run_says_whether_narrow_products_are_fast_here(monkeypatch: pytest.MonkeyPatch):
    cpu = torch.device("cpu")
    assert describe_precision("float32", cpu) is None
    assert describe_precision("bfloat16", torch.device("cuda")) is None
    monkeypatch.setattr("seqcritic.native.products._products", lambda: None)
    assert (describe_precision("bfloat16", cpu) or "").endswith("; float32 is no slower")
    monkeypatch.setenv("SEQCRITIC_NATIVE", "0")
    assert "no, SEQCRITIC_NATIVE=0; float32 is no slower" in (describe_precision("bfloat16", cpu) or "")


def forgetful_calls(text: str) -> list[int]:
    """Return the lines that create a tensor and do not say where; weights of a module go where it goes."""
    tree = ast.parse(text)
    moved = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "nn.Parameter"
        for inner in ast.walk(node)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and id(node) not in moved
        and ast.unparse(node.func) in {f"torch.{name}" for name in CREATORS}
        and "device" not in {keyword.arg for keyword in node.keywords}
    ]


def test_no_tensor_forgets_its_device():
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for room in ("models", "methods", "decoding")
        for path in sorted((SOURCE / room).rglob("*.py"))
        for line in forgetful_calls(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_search_for_forgetful_calls_finds_them():
    text = (
        "a = torch.zeros(3)\nb = nn.Parameter(torch.zeros(3))\nc = torch.arange(3, device=d)\ne = torch.full((2,), 1)"
    )
    assert forgetful_calls(text) == [1, 4]
