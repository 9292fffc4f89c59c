"""Marian-shaped Hugging Face models behind our contract, beside their library and CTranslate2, on one thread.

    python benchmarks/huggingface_speed.py

base: 512 wide, 6 + 6 layers, vocabulary 32,000; small: 128, 2 + 2, 8,000; float32, no dropout, 16 sources at once, the
same random weights on all sides. Likelihood: targets of 5 to 30 tokens; a figure is the time of an update over the
tokens it learnt from, in milliseconds of 300 tokens. Search and sampling write exactly 25 tokens: the end token is
never likely. Memory is the peak of a process of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from side_by_side.alone import run_alone
from side_by_side.claims import Row, row
from side_by_side.figures import Timing, alternate, ratio
from side_by_side.session import OURS, Job, Session, milliseconds

THEIRS = "huggingface"
LENGTH, WIDTH, SOURCES = 25, 10, 16
TOKENS = 300  # of a batch, about
ROUNDS = {"base": 5, "small": 12}
UPDATES = {"base": 3, "small": 20}  # of a round
WARM_UP = {"base": 2, "small": 20}
LIKELIHOOD = {"name": "likelihood"}
ACTOR_CRITIC = {"name": "actor-critic", "likelihood_weight": 0.1}
# The actor, its delayed copy and the frozen anchor share all but their adapters; the critic reads the actor's vectors.
ON_ONE_BASE = ACTOR_CRITIC | {"kl_weight": 0.01}
LORA = {"rank": 8, "targets": ["q_proj", "v_proj"]}
TARGETS: dict[str, dict[str, float | None]] = {
    "likelihood": {"base": 1.8, "small": 1.5},
    "grouped": {"base": 1.1, "small": None},
    "beam": {"base": 1.25, "small": 1.6},
    "ctranslate2": {"base": 0.85, "small": 0.75},
    "sampling": {"base": 1.3, "small": 3.0},
    "actor-critic": {"base": 2.1, "small": 4.0},
    "memory": {"base": 0.9},
}
PEER_TITLES = {"ctranslate2": "CTranslate2 4.8.5, float32"}


def measure(session: Session) -> list[Row]:
    """Return the rows of both sizes."""
    rows = []
    for size in ("base", "small"):
        rows += [*_likelihood(session, size), *_beam(session, size), *_sampling(session, size)]
        rows.append(_actor_critic(session, size))
    return [*rows, _memory(session)]


def _update(job: Job, updates: int) -> Timing:
    """Return the time of an update of so many tokens as a batch has on average."""
    answer = job.run(updates)
    scale = TOKENS / answer["tokens"]
    return Timing(answer["step_cpu"] * scale, answer["step_wall"] * scale)


def _likelihood(session: Session, size: str) -> list[Row]:
    with session.workers(OURS, THEIRS) as workers:
        ours = session.build(workers[OURS], OURS, kind="huggingface-training", size=size, method=LIKELIHOOD)
        peers = {
            name: session.build(workers[THEIRS], THEIRS, kind="likelihood", size=size, sampling=sampling)
            for name, sampling in (("likelihood", "random"), ("grouped", "group_by_length"))
        }
        jobs = {OURS: ours} | peers
        for job in jobs.values():
            session.warm_up(job, WARM_UP[size])
        sides = {name: partial(_update, job, UPDATES[size]) for name, job in jobs.items()}
        times = alternate(sides, session.rounds(ROUNDS[size]))
    how = {"likelihood": "Seq2SeqTrainer as it comes", "grouped": "Seq2SeqTrainer with group_by_length"}
    return [
        _row(f"likelihood update, {size}, against {how[name]}", times, name, OURS, TARGETS[name][size])
        for name in peers
    ]


def _compare_decoding(
    session: Session, size: str, width: int, peers: dict[str, dict[str, Any]]
) -> tuple[dict[str, list[Timing]], dict[str, Any]]:
    """Return the times of our decoding and of peers', and what all of them wrote."""
    request = {"size": size, "length": LENGTH}
    with session.workers(OURS, THEIRS) as workers:
        jobs = {OURS: session.build(workers[OURS], OURS, kind="huggingface-decoding", width=width, **request)}
        for name, peer in peers.items():
            jobs[name] = session.build(workers[THEIRS], THEIRS, **peer, **request)
        written = {name: job.run(1)["tokens"] for name, job in jobs.items()}
        for name, tokens in written.items():
            if any(len(each) != LENGTH for each in tokens):
                raise SystemExit(f"{name} wrote {sorted({len(each) for each in tokens})} tokens, not {LENGTH}")
        steps = 1 if size == "base" else 3
        sides = {name: partial(job.timing, steps) for name, job in jobs.items()}
        return alternate(sides, session.rounds(ROUNDS[size])), written


def _beam(session: Session, size: str) -> list[Row]:
    peers = {
        "beam": {"kind": "generate", "options": {"num_beams": WIDTH}},
        "ctranslate2": {"kind": "ctranslate2", "options": {"beam_size": WIDTH}},
    }
    times, written = _compare_decoding(session, size, WIDTH, peers)
    how = {"beam": f"generate(num_beams={WIDTH})", "ctranslate2": PEER_TITLES["ctranslate2"]}
    rows = []
    for name in peers:
        same = sum(ours == theirs for ours, theirs in zip(written[OURS], written[name], strict=True))
        note = f"{size}, {how[name]}: {same} of {SOURCES} best hypotheses are equal to ours, token by token"
        claim = f"beam {WIDTH}, {LENGTH} tokens, {size}, against {how[name]}"
        rows.append(_row(claim, times, name, OURS, TARGETS[name][size], (note,)))
    return rows


def _sampling(session: Session, size: str) -> list[Row]:
    peers = {
        "sampling": {"kind": "generate", "options": {"do_sample": True}},
        "whole": {"kind": "generate", "options": {"do_sample": True, "top_k": 0}},
    }
    times, _ = _compare_decoding(session, size, 0, peers)
    note = "generate(do_sample=True) draws from the 50 likeliest tokens unless it is told top_k=0; we draw from all"
    claim = f"sampling, {LENGTH} tokens, {size}, against generate(do_sample=True"
    return [
        _row(f"{claim})", times, "sampling", OURS, TARGETS["sampling"][size], (note,)),
        _row(f"{claim}, top_k=0)", times, "whole", OURS, None, (note,)),
    ]


def _actor_critic(session: Session, size: str) -> Row:
    with session.workers(OURS) as workers:
        jobs = {
            name: session.build(workers[OURS], OURS, kind="huggingface-training", size=size, method=method)
            for name, method in (("likelihood", LIKELIHOOD), ("actor-critic", ACTOR_CRITIC))
        }
        for job in jobs.values():
            job.run(1)
        sides = {name: partial(_update, job, UPDATES[size]) for name, job in jobs.items()}
        times = alternate(sides, session.rounds(ROUNDS[size]))
    note = "GRU critic of 256 on the actor's vectors, 512 columns, BLEU of all prefixes; samples as a trained actor's"
    claim = f"actor-critic+likelihood update over likelihood update, Hugging Face model, {size}"
    target = TARGETS["actor-critic"][size]
    return _row(claim, times, "actor-critic", "likelihood", target, (note,), sense="at most")


def _memory(session: Session) -> Row:
    peaks = {}
    for name, method, lora in (("plain", LIKELIHOOD, None), ("adapters", ON_ONE_BASE, LORA)):
        with session.workers(OURS) as workers:  # each in a process of its own
            request = {"size": "base", "method": method} | ({} if lora is None else {"lora": lora})
            job = session.build(workers[OURS], OURS, kind="huggingface-training", **request)
            peaks[name] = job.run(max(2, session.rounds(8)))["peak_bytes"]
    figure = peaks["adapters"] / peaks["plain"]
    return Row(
        "peak memory of actor-critic+likelihood with adapters, its networks on one base, over plain likelihood, base",
        figure,
        figure,
        figure,
        target=TARGETS["memory"]["base"],
        sense="at most",
        clock="none",
        details={"megabytes": {name: peak / 1e6 for name, peak in peaks.items()}},
        notes=(
            f"{peaks['adapters'] / 1e6:,.0f} MB against {peaks['plain'] / 1e6:,.0f}, PyTorch and all else included",
        ),
    )


def _row(
    claim: str,
    times: dict[str, list[Timing]],
    numerator: str,
    denominator: str,
    target: float | None,
    notes: tuple[str, ...] = (),
    **more: Any,
) -> Row:
    cpu = {name: [timing.cpu for timing in times[name]] for name in (numerator, denominator)}
    details = {"times": milliseconds({name: times[name] for name in cpu})}
    return row(claim, ratio(cpu[numerator], cpu[denominator]), target=target, details=details, notes=notes, **more)


if __name__ == "__main__":
    run_alone(measure, __doc__)
