"""The training loop: phases, updates, evaluation, checkpoints. Algorithm 2 of the paper.

Everything that decides the next number is in the checkpoint: networks, target networks, optimisers, the sampling
generator, the position in the data and the progress. A run that is killed and resumed therefore ends with the
same bits as one that is not.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqcritic.errors import Interrupted, NonFiniteError, UserError
from seqcritic.methods.build import assemble_networks
from seqcritic.progress import Bar, log
from seqcritic.settings.io import relative_to_folder
from seqcritic.settings.tree import CriticPhaseSettings, PhaseSettings, Settings
from seqcritic.training.averaging import KeptActors
from seqcritic.training.callbacks import Callback
from seqcritic.training.checkpoint import (
    CheckpointFolder,
    checksum_of,
    load_weights,
    read_description,
    read_tensors,
    write_folder,
)
from seqcritic.training.distributed import Processes
from seqcritic.training.explained_variance import warning
from seqcritic.training.held_out import HeldOut
from seqcritic.training.learner import Learner, MakeOptimiser, adam, exported
from seqcritic.training.model import CHECKPOINTS_FOLDER, MODEL_FOLDER, SNAPSHOTS_FOLDER
from seqcritic.training.parts import Parts
from seqcritic.training.phases import in_updates, learning_rate, planned_phases, reason_to_end, update_cost
from seqcritic.training.progress import Progress
from seqcritic.training.rewards import prepare_score
from seqcritic.training.start import load_start_actor, load_start_critic, network_digest
from seqcritic.training.trackers import chosen_trackers
from seqcritic.training.tracking import Metrics, NoMetrics, loss_terms


class Run:
    """One run in one folder, from where its newest checkpoint left it to its end."""

    def __init__(
        self,
        settings: Settings,
        parts: Parts,
        folder: Path,
        processes: Processes,
        callbacks: Sequence[Callback] = (),
        optimiser: MakeOptimiser = adam,
    ) -> None:
        self.settings = settings
        self.task, self.score = parts.task, parts.score
        self.callbacks = (*chosen_trackers(settings.training.tracker), *callbacks) if processes.is_first else ()
        self.stopped = ""  # why somebody asked the run to end early
        self.folder = folder
        self.processes = processes
        self.checkpoints = CheckpointFolder(folder / CHECKPOINTS_FOLDER)
        # Reading and encoding text fills caches that the others then only read.
        with processes.one_before_the_rest():
            self.fingerprint = self.task.fingerprint()
            prepare_score(self.score, self.task, settings.seed)
        self.phases = planned_phases(settings)
        self.plan = in_updates(settings, self.task.epoch_size, processes.size)
        training = settings.training
        self.kept = KeptActors(training.average, training.average_of == "best", self.score.higher_is_better)
        networks = assemble_networks(settings.method, parts.actor, parts.critic)
        self.learner = Learner(settings, networks, self.score, processes, optimiser)
        self.progress = Progress()
        self.started_from: dict[str, str] = {}  # digests of the networks that the run began with
        self.held_out = HeldOut(settings, self.task, self.score, networks, processes, self._handle_own_signal)
        self._news = ""  # the last validation score, for the bar
        self._saved_at = time.monotonic()
        # A checkpoint knows more than the networks that a run began with: those are read once, at the very start.
        if not self._restore():
            self._start_from_trained()
            self._enter_phase()
        # Weights are part of it: processes that started from different ones would average gradients of different
        # actors.
        processes.require_same(
            f"{self.fingerprint} {self.progress.total_updates} {checksum_of(self.learner.networks.actor)}"
        )
        self.metrics: Metrics | NoMetrics

    def stop(self, reason: str) -> None:
        """End the run after the present update: what is left of its phases is left out, and the model is exported."""
        if self.processes.size > 1:
            raise UserError("a callback cannot stop a run of several processes; send one of them SIGTERM")
        self.stopped = reason

    def go(self) -> None:
        """Go through the remaining phases and export the model."""
        try:
            self._tell("on_start")
            self._run_phases()
            self._tell("on_end")
        except BaseException as error:  # a signal that has ended the run among them
            self._tell("on_error", error)
            raise

    def _tell(self, event: str, *news: object) -> None:
        """Tell all callbacks of an event."""
        for callback in self.callbacks:
            getattr(callback, event)(self, *news)

    def _run_phases(self) -> None:
        first = self.processes.is_first
        self.metrics = Metrics(self.folder, self.progress.metrics_bytes) if first else NoMetrics()
        while self.progress.phase < len(self.phases) and not self.stopped:
            self._run_phase(self.phases[self.progress.phase])
            # Before the next phase starts: it begins with the best actor, which this may replace.
            self._average()
            if self.phases[self.progress.phase] == "actor":
                if self.settings.phases.actor.keep == "last":
                    self.learner.best_actor = self.learner.actor_weights()
                self._sharpen()
            self.progress.start_phase(self.progress.phase + 1)
            self._enter_phase()
        self._finish()

    def _sharpen(self) -> None:
        """Multiply the pre-trained actor's logits by `method.sharpening`, once, if a method will train it."""
        wanted = self.settings.method.sharpening
        if self.settings.method.name == "likelihood" or self.phases in ([], ["actor"]):
            return
        if wanted != self.progress.sharpening:  # start.actor may have been sharpened already
            self.learner.sharpen_best_actor(wanted / self.progress.sharpening)
            self.progress.sharpening = wanted

    def _enter_phase(self) -> None:
        """Begin a phase: the actor is the best of the phase before it, target networks and optimisers are fresh."""
        load_weights(self.learner.networks.actor, self.learner.best_actor, "the best actor")
        self.kept.clear()
        if self.progress.phase < len(self.phases):
            self.learner.start_phase(self.phases[self.progress.phase])  # after loading: copies begin as the best actor

    def _run_phase(self, phase: str) -> None:
        rules: PhaseSettings = getattr(self.plan.phases, phase)
        progress = self.progress
        cost = update_cost(self.settings, phase)
        log.info(f"phase {phase}: update {progress.update} of {rules.updates}")
        self._tell("on_phase", phase)
        with Bar(phase, rules.updates, start=progress.update, pace=True) as bar:
            while True:
                clock = time.monotonic()
                self._evaluate_if_due(phase, rules)
                ended = progress.update >= rules.updates or self._should_end(phase, rules) or self._was_stopped(phase)
                if not ended:
                    self._update(phase, rules, cost)
                progress.seconds += time.monotonic() - clock
                # Seconds are counted first: evaluations belong to the time of a method too.
                if ended:
                    break
                due = progress.update % self.settings.training.log_every == 0
                bar.update(progress.update, self._news, loss_terms(self._log(phase)) if due else None, now=due)
                # Between updates, the only points at which all state is whole.
                self._handle_signal()
                if self._save_is_due():
                    self._save()

    def _update(self, phase: str, rules: PhaseSettings, cost: float) -> None:
        progress, size = self.progress, self.settings.training.update_size * self.processes.size
        batch = self.task.training_batch(progress.examples, size, self.settings.seed)
        try:
            rate = learning_rate(rules, progress.update)
            measurements = self.learner.update(batch, rate, progress.update / rules.updates)
        except NonFiniteError as error:
            raise self._located(error, phase, progress.update + 1) from None
        # Only after the update has succeeded: what is checkpointed never counts one that was not made.
        progress.update += 1
        progress.total_updates += 1
        progress.examples += size  # of the stream, though a batch of it may hold fewer
        progress.compute += cost
        progress.add(measurements)
        self._tell("on_update", measurements)

    def _located(self, error: NonFiniteError, phase: str, update: int) -> NonFiniteError:
        """Return the error with its update and phase, the last good checkpoint, and what to try."""
        kept = self.checkpoints.latest()
        return NonFiniteError(
            f"{error} at update {update} of phase '{phase}'; the last good checkpoint is "
            f"{kept if kept else 'none yet'}; try a smaller phases.{phase}.learning_rate"
        )

    def _evaluate_if_due(self, phase: str, rules: PhaseSettings) -> None:
        """Evaluate every so many updates and at the end; the critic's phase by its TD error."""
        progress = self.progress
        due = progress.update % self.plan.training.evaluate_every == 0 or progress.update == rules.updates
        if not due or progress.evaluated_at == progress.update:
            return
        progress.close_interval()
        explained = self._explained_variance(phase)
        scores = explained
        if phase == "critic":
            scores = explained | self._token_correlation(rules)
            self._write("critic", phase, scores)
        else:
            # Both may be broken off, so they come before anything that must not be done twice.
            score = self.held_out.score("valid")
            fit = {"train_score": self.held_out.score("train")} if self.settings.training.train_examples else {}
            progress.stale_evaluations += 1
            progress.curve.append([progress.update, score])
            if self.kept.size > 1:
                self.kept.add(score, self.learner.actor_weights())
            if progress.best_score is None or self._is_better(score, progress.best_score):
                progress.best_score, progress.best_update = score, progress.update
                progress.stale_evaluations = 0
                self.learner.best_actor = self.learner.actor_weights()
            fit |= self.held_out.measures()
            scores = {"valid_score": score, "best_score": progress.best_score} | fit | explained
            self._write("valid", phase, scores)
            best = self.score.write(progress.best_score)
            self._news = f"valid {self.score.name} {self.score.write(score)} (best {best})"
            log.info(f"{phase} {progress.update}: {self._news}{self.held_out.tell()}")
        # Marked as done only now: a run that is killed within an evaluation makes it again, whole.
        self._keep_snapshot(phase)
        progress.evaluated_at = progress.update
        self._tell("on_evaluation", scores)

    def _explained_variance(self, phase: str) -> dict[str, float]:
        """Return how much the critic explains on validation samples; warn where joint training starts with little."""
        if phase == "actor" or self.learner.networks.critic is None:
            return {}
        try:
            explained = self.held_out.explained_variance()
        except NonFiniteError as error:
            raise self._located(error, phase, self.progress.update) from None
        self.progress.explained_variance = explained
        if phase == "critic":
            self._news = f"explains {100 * explained:.0f} %"  # the actor's score stands still
        text = warning(explained) if phase == "train" and self.progress.update == 0 else ""
        if text:
            log.warning(text)
        else:
            log.info(f"{phase} {self.progress.update}: the critic explains {100 * explained:.0f} %")
        return {"held_out_explained_variance": explained}

    def _token_correlation(self, rules: PhaseSettings) -> dict[str, float]:
        """Return how the critic's values of tokens correlate with true ones, where a rule asks for it."""
        if not isinstance(rules, CriticPhaseSettings) or (rules.token_correlation is None and rules.flat is None):
            return {}
        found = self.held_out.token_correlation()
        self.progress.curve.append([self.progress.update, found])
        log.info(f"critic {self.progress.update}: token values correlate with the true ones by {found:.2f}")
        return {"token_correlation": found}

    def _average(self) -> None:
        """Make the mean of the kept actors the result of the last phase, whether it scores better or not."""
        mean = self.kept.mean()
        if mean is None or self.progress.phase + 1 < len(self.phases):
            return
        load_weights(self.learner.networks.actor, mean, "the mean actor")
        self.learner.best_actor = self.learner.actor_weights()
        score, number = self.held_out.score("valid"), len(self.kept)
        self._write("average", self.phases[self.progress.phase], {"average_score": score, "actors": float(number)})
        log.info(f"the mean of {number} actors: valid {self.score.name} {self.score.write(score)}")

    def _is_better(self, score: float, best: float) -> bool:
        return score > best if self.score.higher_is_better else score < best

    def _should_end(self, phase: str, rules: PhaseSettings) -> bool:
        """Apply the phase's stopping rule, at evaluations only."""
        if self.progress.evaluated_at != self.progress.update:
            return False
        size, batch = self.task.epoch_size or 0, self.settings.training.update_size * self.processes.size
        reason = reason_to_end(rules, self.progress, self.score.higher_is_better, size / batch)
        if reason:
            log.info(f"phase {phase} ends at update {self.progress.update}: {reason}")
        return bool(reason)

    def _was_stopped(self, phase: str) -> bool:
        """Whether a callback asked for the end."""
        if self.stopped:
            log.info(f"phase {phase} ends at update {self.progress.update}: {self.stopped}")
        return bool(self.stopped)

    def _log(self, phase: str) -> dict[str, float]:
        means = self.progress.take_means()
        self._write("train", phase, means)
        return means

    def _write(self, kind: str, phase: str, values: dict[str, float]) -> None:
        head = {"kind": kind, "phase": phase} | self.progress.counts()
        record = head | values | {"seconds": self.progress.seconds}
        self.metrics.write(record)
        self.progress.metrics_bytes = self.metrics.offset  # what a resumed run keeps of the file
        self._tell("on_record", record)

    def _handle_signal(self) -> None:
        """Checkpoint and leave, all processes at the same update, when one is asked to stop."""
        number = self.processes.agreed_signal()
        if number is not None:
            self._save()
            self.processes.wait()  # the first to end takes the others with it
            raise self._interrupted(number)

    def _handle_own_signal(self) -> None:
        """Checkpoint and leave when this process, for which the others wait, is asked to stop."""
        number = self.processes.stop_signal()
        if number is not None and not self.settings.training.shard:  # whose checkpoints need all, after an update
            self._save()
            raise self._interrupted(number)

    def _interrupted(self, number: int) -> Interrupted:
        return Interrupted(number, f"stopped; the same command resumes from {self.checkpoints.latest()}")

    def _save_is_due(self) -> bool:
        """Whether it is time for a checkpoint; what is spread over processes is gathered by all of them or none."""
        due = time.monotonic() - self._saved_at >= self.settings.training.checkpoint_seconds
        return bool(self.processes.from_first(lambda: float(due))) if self.settings.training.shard else due

    def _save(self) -> None:
        """Write a checkpoint; every process holds or gathers the same state, so the first does it for all."""
        tensors = self.learner.tensors_in_first()
        if tensors is None:
            return
        kept = {"kept": self.kept.tensors()} if self.kept.size > 1 else {}
        self.checkpoints.write(tensors | kept, self._told())  # whole or not at all
        self._saved_at = time.monotonic()
        self._tell("on_checkpoint", self.checkpoints.latest())

    def _keep_snapshot(self, phase: str) -> None:
        """Keep the present networks as a model folder where settings ask for it, for `diagnose`."""
        every = self.settings.training.snapshot_every
        if phase == "train" and every is not None and self.progress.update % every == 0:
            tensors, actor = self.learner.tensors_in_first(), self.learner.actor_weights()
            if tensors is not None:
                groups = exported(tensors) | {"actor": actor}
                write_folder(self.folder / SNAPSHOTS_FOLDER / f"{self.progress.update:08d}", groups, self._told())

    def _restore(self) -> bool:
        """Load the newest checkpoint, if there is one."""
        latest = self.checkpoints.latest()
        if latest is None:
            return False
        description = read_description(latest)
        # Before any tensor is read: a position in another text would go on without a word.
        if description["data"] != self.fingerprint:
            raise UserError(f"{self.folder}: the text has changed since this run began; give another folder")
        # Another number of processes cuts batches elsewhere, and sums in another order: not the same bits.
        if description.get("processes", 1) != self.processes.size:
            raise UserError(
                f"{self.folder}: this run began with {description.get('processes', 1)} process(es), not "
                f"{self.processes.size}; resume it with as many, or give another folder"
            )
        self.started_from = description.get("start", {})
        groups = {name: read_tensors(latest, name, description) for name in description["digests"]}
        try:
            self.progress = Progress(**description["progress"])
            # Optimisers and copies of the phase must exist before their state can be put into them.
            self._enter_phase()
            self.learner.load_tensors(groups, str(latest))
            if self.kept.size > 1:
                self.kept.load_tensors(groups["kept"])
        except (KeyError, TypeError) as error:
            raise UserError(f"{latest} is damaged ({error}); remove it and go on from the one before") from None
        log.info(f"resuming from {latest}")
        return True

    def _start_from_trained(self) -> None:
        """Load the actor and critic the settings name and go on where their training text ended."""
        networks, progress = self.learner.networks, self.progress
        self.started_from = {name: network_digest(place, name) for name, place in self.settings.start if place}
        if self.settings.start.actor is not None:
            trained = load_start_actor(self.settings, networks.actor, self.task.codec)
            self.learner.best_actor = self.learner.actor_weights()
            progress.sharpening = trained.get("sharpening", 1.0)
            self._sharpen()
            progress.examples = trained["examples"]
        if self.settings.start.critic is not None and networks.critic is not None:
            trained = load_start_critic(self.settings, networks.critic)
            progress.examples = max(progress.examples, trained["examples"])
            # What the critic cost belongs to the method that uses it.
            progress.compute, progress.seconds = trained["compute"], trained["seconds"]

    def _told(self) -> dict[str, Any]:
        """Return the description.json of a folder of weights."""
        return {
            "settings": relative_to_folder(self.folder, self.settings).model_dump(mode="json"),
            "data": self.fingerprint,
            "valid_signature": self.held_out.signature,
            "start": self.started_from,
            "processes": self.processes.size,
            "codec": self.task.codec.to_dict(),
            "progress": self.progress.to_dict(),
        }

    def _finish(self) -> None:
        """Mark the run finished and export what others load: the best actor, the last critic."""
        self.progress.finished = True
        self._save()  # first: killed from here on, the next call comes here again and writes the model
        tensors = self.learner.tensors_in_first()
        if tensors is not None:
            write_folder(self.folder / MODEL_FOLDER, exported(tensors), self._told())
