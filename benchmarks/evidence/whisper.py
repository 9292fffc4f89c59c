"""The study of real weights: Whisper tiny.en on synthetic speech, before and after training for the word error rate.

    python benchmarks/evidence/whisper.py --model whisper-tiny.en --sentences train.en.gz --runs runs/whisper \\
        --out docs/results/whisper.json

`--model` is what convert_whisper.py has written. espeak-ng (Debian's package) speaks sentences of 20 to 90 characters
in several voices and speeds, with white noise at 0 to 20 dB; sentences, voices and noise are drawn from a seed. WER is
measured before anything is trained, then after likelihood fine-tuning continued, actor-critic and minimum risk over the
n best of a beam search (MWER), the latter two with likelihood at their side, at equal compute from one fine-tuned
start. Stopped, the same command goes on.

Further arguments are settings of all runs. The script is tried out by
`--train 16 --valid 4 --test 4 phases.actor.updates=4 phases.critic.updates=2 phases.train.updates=2 compare.budget=8`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from seqcritic import compare, evaluate, load_recipe, train
from seqcritic.progress import Bar
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import with_method
from seqcritic.training.environment import environment

RECIPE = Path(__file__).with_name("whisper.yaml")
SEED = 20
VOICES = ("en-us", "en-us+m3", "en-us+f2", "en-gb", "en-gb+m7", "en-gb+f4", "en-gb-scotland", "en-gb-x-rp+f3")
SPEEDS = (130, 200)  # words a minute, from and to
NOISE = (0.0, 20.0)  # decibels by which speech is louder than the noise, from and to
LENGTHS = (20, 90)  # characters of a sentence
SPLITS = ("train", "valid", "test")


def read_sentences(paths: list[Path], number: int) -> list[str]:
    """Return so many different sentences, drawn from a seed."""
    found: dict[str, None] = {}
    for path in paths:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
            found |= {line.strip(): None for line in file if LENGTHS[0] <= len(line.strip()) <= LENGTHS[1]}
    plain = [line for line in found if re.fullmatch(r"[A-Za-z ,.'?!-]+", line)]  # what espeak says is what is written
    return random.Random(SEED).sample(plain, number)


def speak(sentence: str, path: Path, draws: random.Random) -> None:
    """Write a sentence as a sound."""
    voice, speed = draws.choice(VOICES), draws.randint(*SPEEDS)
    ratio, seed = draws.uniform(*NOISE), draws.randrange(1 << 32)
    if path.is_file():
        return
    clean = path.with_suffix(".clean")
    subprocess.run(["espeak-ng", "-v", voice, "-s", str(speed), "-w", str(clean), "--", sentence], check=True)
    samples, rate = soundfile.read(clean, dtype="float32")
    noise = np.random.default_rng(seed).standard_normal(len(samples)).astype(np.float32)
    noisy = samples + noise * float(np.sqrt(np.mean(samples**2))) * 10 ** (-ratio / 20)
    written = path.with_suffix(".partial")
    soundfile.write(written, noisy / max(1.0, float(np.abs(noisy).max())), rate, "PCM_16", format="WAV")
    clean.unlink()
    written.replace(path)


def make_speech(folder: Path, sentences: list[Path], sizes: dict[str, int]) -> list[str]:
    """Write the sounds of all splits and a table of each; return the settings that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = read_sentences(sentences, sum(sizes.values()))
    draws, settings, first = random.Random(SEED), [], 0
    with Bar("speaking the sentences, once", len(chosen), "sentences") as bar:
        for split, size in sizes.items():
            rows = [(f"{number}.wav", chosen[number]) for number in range(first, first + size)]
            for name, sentence in bar.over(rows):
                speak(sentence, folder / name, draws)
            with (folder / f"{split}.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([("file", "text"), *rows])
            settings.append(f"data.{split}.pairs={folder / f'{split}.csv'}")
            first += size
    return settings


def plain_words(text: str) -> list[str]:
    """Return the words of a text without case and punctuation."""
    return re.sub(r"[^a-z' ]", " ", text.lower().replace("-", " ")).split()


def figures(run: Path) -> dict[str, Any]:
    """Return what a run's actor hears on test, greedily: WER as written, and without case and punctuation."""
    found = evaluate(run, split="test")
    plain = EditDistanceScore(split=plain_words, rules="plain")
    totals = plain.statistics(found.predictions, found.references).sum(axis=0)
    shown = list(zip(found.references, found.predictions, strict=True))[:5]
    return {
        "method": found.method,
        "wer": found.score,
        "interval": found.interval,
        "wer_plain": float(plain.of_totals(totals)),
        "signature": found.signature,
        "examples": shown,
    }


def main() -> None:
    """Run the study, or go on with it, and write its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sentences", type=Path, nargs="+", required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    for split, size in zip(SPLITS, (1200, 100, 300), strict=True):
        parser.add_argument(f"--{split}", type=int, default=size)
    options, overrides = parser.parse_known_args()
    started = time.monotonic()
    speech = make_speech(options.runs / "speech", options.sentences, {name: getattr(options, name) for name in SPLITS})
    given = [*speech, f"actor.pretrained={options.model}", *overrides]
    settings = load_recipe(str(RECIPE), given)
    nothing = [f"phases.{phase}.updates=0" for phase in ("actor", "critic", "train")]
    before = train(with_method(load_recipe(str(RECIPE), [*given, *nothing]), "likelihood"), options.runs / "before")
    rows = {"before": figures(before)}
    _, folder = compare(settings, settings.compare.methods, out=options.runs / "compared")
    for name, run in {"fine-tuned start": "actor", **{method: method for method in settings.compare.methods}}.items():
        rows[name] = figures(folder / "seed-1" / run)
    record = {
        "overrides": overrides,
        "sizes": {name: getattr(options, name) for name in SPLITS},
        "seconds_of_the_last_call": round(time.monotonic() - started),
        "environment": environment(),
        "rows": rows,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name, row in rows.items():
        print(f"{name:28} WER {row['wer']:.2f}  without case and punctuation {row['wer_plain']:.2f}")


if __name__ == "__main__":
    main()
