"""The evaluation of pronunciations: several references, seeds, and the phonemes of espeak-ng."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from g2p import evaluate, write_rows
from g2p_peers import read_espeak
from tables import pronunciation

REFERENCES = [("R EH D", "R IY D"), ("AE T",), ("IH N T UW", "IH N T AH W")]


def test_the_nearest_pronunciation_counts_and_any_is_right(tmp_path: Path):
    first = evaluate("one", "greedy", [["R IY D", "AH T", "IH N T AH"]], REFERENCES)
    # Errors 0, 1 and 1; the third is as near to both, and the longer counts: 2 of 3 + 2 + 5.
    assert first["per"] == pytest.approx(100 * 2 / 10, abs=1e-3)
    assert first["wer"] == pytest.approx(100 * 2 / 3, abs=1e-3)
    assert first["wer_interval"][0] <= first["wer"] <= first["wer_interval"][1]
    right = [own[0] for own in REFERENCES]
    both = evaluate("two", "greedy", [["R IY D", "AH T", "IH N T AH"], right], REFERENCES)
    assert [seed["wer"] for seed in both["seeds"]] == [first["wer"], 0.0]
    assert both["per"] == pytest.approx(first["per"] / 2)
    write_rows(tmp_path / "rows.json", [first, both])
    assert [row["title"] for row in json.loads((tmp_path / "rows.json").read_text())["rows"]] == ["one", "two"]
    assert "| 66.67 / 0.00 | 20.00 / 0.00 |" in pronunciation(tmp_path / "rows.json")


@pytest.mark.parametrize(
    ("said", "phonemes"),
    [
        ("a#_b_'eI_t#_I_N", "AH B EY T IH NG"),
        (",a_b_3_r_'eI_S_@_n_z", "AE B ER EY SH AH N Z"),
        ("a#_s_'e@_r_oU", "AH S EH R OW"),
        ("r_'E_d", "R EH D"),
        (",eI_s_'i: k_'eI", "EY S IY K EY"),
    ],
)
def test_phonemes_of_espeak_are_those_of_the_dictionary(said: str, phonemes: str):
    assert read_espeak(said) == phonemes
