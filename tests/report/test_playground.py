"""What the playground computes in a real browser is what Python computes, and its controls do what they promise."""

from __future__ import annotations

import html
import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from test_browser import add_script, dump_page, opening_tag
from tokenizers import Tokenizer, models

from seqcritic.analysis import playground as module
from seqcritic.analysis.inspect import inspect
from seqcritic.analysis.playground import WeightStore, describe_playground, playground
from seqcritic.contracts.batch import Batch, pad
from seqcritic.data.codecs.text import TextCodec
from seqcritic.data.subwords import SubwordVocabulary
from seqcritic.data.tokens import WordVocabulary, learn_vocabulary
from seqcritic.decoding.sampling import greedy
from seqcritic.errors import UserError
from seqcritic.files import seal
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.lookahead import all_values
from seqcritic.methods.rollout import score_tokens
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.report.playground import SCRIPTS, render_playground
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.data import TokenSettings
from support import SHORT, Refusal, train_here, write_recipe

NUM_SOURCE, NUM_TARGET, UNKNOWN = 9, 12, 1
SIZES = {"embedding": 5, "hidden": 6, "attention": 4, "initial_range": 1.0}
NETWORKS: dict[str, tuple[dict[str, Any], dict[str, Any], EditDistanceScore]] = {
    "plain": ({}, {}, EditDistanceScore()),
    "window": ({"encoder": "window", "output_width": 7}, {"output_width": 3}, EditDistanceScore()),
    "tied": ({"tied": True}, {"tied": True, "reads_actor_states": False}, EditDistanceScore(normalise=True)),
    "lookahead": ({}, {"residual_on": "lookahead"}, EditDistanceScore(unknown=UNKNOWN)),
    "optimal": ({}, {"residual_on": "optimal-completion"}, EditDistanceScore(normalise=True, unknown=UNKNOWN)),
    "columns": ({}, {"columns": 8, "residual_on": "lookahead"}, EditDistanceScore(unknown=UNKNOWN)),
    "optimal columns": ({}, {"columns": 8, "residual_on": "optimal-completion"}, EditDistanceScore()),
    "actor's vectors": ({"output_width": 5}, {"embeddings": "actor", "columns": 7}, EditDistanceScore()),
}
SOURCE, REFERENCE, PREDICTION = [3, 8, 1, 2, 2, 5, 0], [4, 1, 9, 4, 6, 0], [4, 4, 1, 9, 11, 6, 2, 0]
LINES = (
    "Don't “stop”, she said… l'homme (2,700.50 at 10:45)!",
    "e-mail me@example.org or https://example.org/a/b. naïve café 5 °C −3 -4 x-- -y",
    "what?! ⁇ tab\tand\u00a0space  rock'n'roll boys' ÉCOLE 漢字テスト ½ a_b C++ -",
)


def read_scripts(names: tuple[str, ...]) -> str:
    return "\n".join(files("seqcritic.report").joinpath("playground", name).read_text("utf-8") for name in names)


def build(name: str) -> tuple[RecurrentActor, RecurrentCritic, EditDistanceScore]:
    """Build the networks of a case with large random weights, which tell all tokens apart."""
    own, critics, score = NETWORKS[name]
    generator = torch.Generator().manual_seed(len(name))
    actor = RecurrentActor(GruActorSettings(**SIZES, **own), NUM_SOURCE, NUM_TARGET, generator)
    return actor, RecurrentCritic.build(GruCriticSettings(**SIZES, **critics), actor, generator), score


@torch.no_grad()
def follow_in_python(actor: RecurrentActor, critic: RecurrentCritic, score: EditDistanceScore) -> dict[str, Any]:
    example = Batch(*pad([SOURCE[:-1]]), *pad([REFERENCE[:-1]]))
    tokens = torch.tensor([PREDICTION])
    memory = actor.encode(example.sources, example.source_mask)
    logits, states = actor.score(memory, tokens)
    probabilities = torch.softmax(logits, dim=2)
    everywhere = torch.ones_like(tokens, dtype=torch.bool)
    columns = choose_columns(critic, actor.special, example, probabilities[0, :1])
    values = all_values(critic, score, actor.special, example, tokens, everywhere, states, columns)
    return {
        "probabilities": probabilities[0].tolist(),
        "values": values[0].tolist(),
        "rewards": score_tokens(score, actor.special, tokens, everywhere, example, shaping=True)[0].tolist(),
        "sourceAttention": actor.attention(memory, tokens)[0].tolist(),
        "referenceAttention": critic.attention(critic.read(example), tokens, states)[0].tolist(),
        "greedy": greedy(actor, example.sources, example.source_mask)[0].tolist(),
    }


def describe(actor: RecurrentActor, critic: RecurrentCritic, score: EditDistanceScore) -> dict[str, Any]:
    store = WeightStore("float32")
    networks = {
        "actor": module.describe_network(actor.for_page(), store),
        "critic": module.describe_critic(critic.for_page(), critic, store),
    }
    weights = torch.frombuffer(bytearray(store.bytes()), dtype=torch.float32).tolist()
    return {
        "precision": "float32",
        **networks,
        "score": module.describe_score(score, True),
        "end": 0,
        "numbers": weights,
    }


def test_networks_and_tokens_agree_with_python(tmp_path: Path) -> None:
    cases = {name: build(name) for name in NETWORKS}
    words = [WordVocabulary("words", True, []).words(line) for line in LINES]
    known = sorted({word for line in words for word in line})[::2]
    codec = TextCodec(WordVocabulary("words", True, known), WordVocabulary("whitespace", False, LINES[1].split()[::2]))
    spelled = TextCodec(codec.source, WordVocabulary("characters", True, sorted(set(LINES[0].lower()))))
    learnt = learn_vocabulary(LINES[:2] * 3, TokenSettings(kind="subwords", size=300))
    codecs = (codec, spelled, TextCodec(codec.source, learnt))
    given = {
        "models": {name: describe(*case) for name, case in cases.items()},
        "codecs": [module.describe_codec(each, Path("run")) for each in codecs],
        "lines": LINES,
    }
    script = f"""
        const given = {json.dumps(given)};
        const found = {{ models: {{}} }};
        for (const [name, description] of Object.entries(given.models)) {{
          const bytes = new Uint8Array(Float32Array.from(description.numbers).buffer);
          const model = openModel(description, btoa(String.fromCharCode(...bytes)));
          const steps = follow(model, {SOURCE}, {REFERENCE}, {PREDICTION});
          const part = (key) => steps.map((one) => Array.from(one[key]));
          found.models[name] = {{
            probabilities: part("probabilities"), values: part("values"), rewards: steps.map((one) => one.reward),
            sourceAttention: part("sourceAttention"), referenceAttention: part("referenceAttention"),
            greedy: goOn(model.actor, {SOURCE}, [], 0, {2 * len(SOURCE) + 10}, likeliest),
          }};
        }}
        const codecs = given.codecs.map(openCodec);
        found.words = given.lines.map(splitWords);
        found.sources = given.lines.map(codecs[0].encodeSource);
        found.targets = codecs.map((codec) => given.lines.map((line) => codec.encodeTarget(" " + line + "\\t")));
        found.again = codecs.map((codec, place) =>
          found.targets[place].map((ids) => codec.encodePrediction(codec.write(ids))));
        found.shown = found.targets[2].map((ids) => ids.map(codecs[2].targetToken));
        document.getElementById("found").textContent = JSON.stringify(found);
    """
    code = read_scripts(tuple(name for name in SCRIPTS if name != "page.js"))
    page = f'<!doctype html><html><meta charset="utf-8"><pre id="found"></pre><script>{code}\n{script}</script></html>'
    document = dump_page(page, tmp_path)
    shown = re.search(r'<pre id="found">(.+?)</pre>', document)
    assert shown is not None, document[-2000:]
    found = json.loads(html.unescape(shown[1]))
    for name, case in cases.items():
        expected = follow_in_python(*case)
        written = expected.pop("greedy")
        assert found["models"][name].pop("greedy") == written, name
        for key, numbers in expected.items():
            gap = torch.tensor(found["models"][name][key], dtype=torch.float64) - torch.tensor(numbers)
            assert gap.abs().max() < 1e-5, (name, key)
    assert [[word.lower() for word in line] for line in found["words"]] == words
    normal = [codec.normalise(line) for line in LINES]
    assert found["sources"] == codec.source.encode_all(normal)
    assert found["targets"] == [each.target.encode_all(normal) for each in codecs]
    assert found["again"] == found["targets"]
    assert found["shown"] == [learnt.tokens(ids) for ids in found["targets"][2]]
    assert {1, 2} < set(found["sources"][0])


def test_page_computes_what_inspect_prints_and_obeys(finished_run: Path, tmp_path: Path) -> None:
    page = playground(finished_run, tmp_path / "play.html", examples=[("Th cqt", "the <cat>")]).read_text("utf-8")
    untouched = dump_page(page, tmp_path)
    assert 'data-ready="true"' in opening_tag(untouched)
    assert "data-error" not in opening_tag(untouched)
    assert not re.search(r"(src|href)\s*=\s*[\"']?\s*https?:|@import|fetch\(", page)
    table = inspect(finished_run, "Th cqt", "the <cat>")
    shown = re.findall(r'<span class="unseen">(Step [^<]*)<', untouched)
    assert shown == [
        f"Step {place + 1} of {len(table.steps)}: {'the end' if step.token == '' else f'“{step.token}”'}, "
        f"probability {write_percent(step.probability)}, value {write_number(step.value)}, "
        f"{write_number(step.best[0].value - step.value)} below the best"
        for place, step in enumerate(table.steps)
    ]
    script = """
        const tell = (name, value) => { document.documentElement.dataset[name] = JSON.stringify(value); };
        const press = (key) => find("tiles").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        find("reference").value = "cat"; find("reference").dispatchEvent(new Event("input"));
        find("prediction").value = "c t"; find("prediction").dispatchEvent(new Event("input"));
        tell("edited", page.steps.map((one) => [one.token, one.reward, one.values[one.token]]));
        press("End"); const last = page.current; press("ArrowLeft"); press("ArrowLeft"); press("ArrowRight");
        tell("moved", [last, page.current]);
        document.querySelector('input[value="stay"]').checked = true;
        press("Home");
        const other = [...document.querySelectorAll("#candidates button")].find((one) => one.ariaPressed === "false");
        other.focus(); other.click();
        tell("taken", [Number(other.dataset.token), page.tokens, document.activeElement.dataset.token]);
        find("copy").click();
        tell("score", find("outcome").textContent);
        find("source").value = ""; find("source").dispatchEvent(new Event("input"));
    """
    document = dump_page(add_script(page, script), tmp_path)
    tag = html.unescape(opening_tag(document))
    assert "data-error" not in tag
    told = {
        name: json.loads(text) for name, text in re.findall(r'data-(edited|moved|taken|score)="(.*?)" ?(?=data|>)', tag)
    }
    expected = inspect(finished_run, "Th cqt", "cat", prediction="c t")
    assert [row[1] for row in told["edited"]] == [step.reward for step in expected.steps]
    assert [row[2] for row in told["edited"]] == pytest.approx([step.value for step in expected.steps], abs=1e-5)
    assert told["moved"] == [3, 2]
    taken, tokens, focused = told["taken"]
    assert (tokens[0], int(focused)) == (taken, taken)
    assert tokens[1:] == [row[0] for row in told["edited"]][1:]
    assert told["score"].startswith("This text scores 3 of 3.")


def write_percent(probability: float) -> str:
    return f"{100 * probability:.0f} %" if probability >= 0.0995 else f"{100 * probability:.1f} %"


def write_number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def test_half_precision_shows_the_rounded_model(finished_run: Path) -> None:
    whole, half = (describe_playground(finished_run, half=half) for half in (False, True))
    assert len(whole.weights) == 2 * len(half.weights)
    numbers = torch.frombuffer(bytearray(half.weights), dtype=torch.float16).float()
    torch.testing.assert_close(
        numbers, torch.frombuffer(bytearray(whole.weights), dtype=torch.float32), atol=1e-3, rtol=0
    )
    assert any("rounded to 16 bits" in note for note in half.notes)


def test_a_run_without_a_critic_shows_its_actor_alone(lively_run: Path) -> None:
    found = describe_playground(lively_run)
    assert (found.has_critic, found.description["critic"]) == (False, None)
    assert len(found.description["examples"]) == 4
    page = render_playground(found)
    assert "shows its actor alone" in page
    assert 'class="critic"' not in page


def test_what_a_page_cannot_run_is_refused_in_one_line(
    finished_run: Path, tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "page.html"
    assert "give a file that ends in .html" in refusal("playground", finished_run, "--out", tmp_path / "page.pdf")
    foreign = shutil.copytree(finished_run, tmp_path / "foreign")
    path = foreign / "model" / "description.json"
    description = json.loads(path.read_text())
    description["settings"]["actor"]["kind"] = "huggingface"
    path.write_text(json.dumps(seal(description)))
    assert "its actor is of kind huggingface; show one prediction" in refusal("playground", foreign, "--out", out)
    monkeypatch.setattr(module, "MOST_WEIGHTS", 1000)
    assert re.search(
        r"[\d,]+ weights, of which a page can hold 1,000; show", refusal("playground", finished_run, "--out", out)
    )
    assert not out.exists()


def test_tokens_that_a_page_does_not_know_are_refused() -> None:
    words = WordVocabulary("words", False, ["a"])
    given = SubwordVocabulary(Tokenizer(models.BPE()), False, kind="tokenizer")
    with pytest.raises(UserError, match=r"^run: .* its tokens are those of a tokenizer; a page knows subwords, words"):
        module.describe_codec(TextCodec(words, given), Path("run"))


def test_a_score_that_a_page_cannot_look_ahead_with_is_refused(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("eins zwei\tone two\nzwei drei\ttwo three\n" * 4, encoding="utf-8")
    data = {"task": "translation", **{split: {"pairs": str(pairs)} for split in ("train", "valid", "test")}}
    recipe = write_recipe(tmp_path, data=data, score={"name": "bleu"})
    run = train_here(recipe, tmp_path / "run", *SHORT, "critic.residual_on=lookahead")
    with pytest.raises(UserError, match="adds what bleu says of each token, which a page can compute"):
        describe_playground(run)
