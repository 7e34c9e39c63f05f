"""A sweep: record, train every trial with Tune, judge every agent on Ray actors, report.

The phases follow one another. Judging is no part of a trial: its units are small and many, so all
workers of the cluster share those of one agent after the other, none idles while one trial's last
goal is played, and training and judging never wait for each other's CPUs. What a phase has finished
is on disk, so a sweep that was killed goes on with the first thing that is missing.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lanista.envs.errors import InputError, LanistaError, RunError
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.platform.cli.output import progress, say
from lanista.platform.cluster import available_cpus, ray_session
from lanista.platform.config import Document, make, to_plain
from lanista.platform.executor import RayExecutor
from lanista.platform.experiment import SweepFile, Trial, slug
from lanista.platform.judging import evaluation_metrics, judge, make_protocol, make_table
from lanista.platform.provenance import write_json
from lanista.platform.recording import check_source, cluster_workers, record
from lanista.platform.root import Root
from lanista.platform.run_folder import (
    CONFIG,
    EVALUATION,
    RESULT,
    SWEEP,
    TRAINED,
    RunFolder,
    read_error,
    read_json,
    write_error,
)
from lanista.platform.signals import interruptible
from lanista.platform.tracking import RunLog, Tracker, finishing
from lanista.platform.training import Data, read_trained


def run_sweep(file: SweepFile, root: Root) -> dict[str, Any]:
    """Run a sweep, go on with it, or return what it came to if it is finished.

    Args:
        file: The sweep.
        root: Where its data, runs and tracking database are.

    Returns:
        ``name, trials, finished, failed, failures: [{trial, error}], table, parent_run_id,
        report, tracking_uri, compare, protocol, seconds, parts: {part: seconds}``.

    Raises:
        InputError: If the file, the data, the cluster or the tracking server cannot be used, or
            the name belongs to another configuration.
        RunError: If recording failed in part.
    """
    folder = RunFolder(root, file.name)
    with folder.locked(), interruptible():
        folder.begin(file)
        done = folder.result()
        if done is not None and not done["failed"]:
            return done
        check_source(file.data, root)
        tracker = Tracker(root, file.name)
        say(f"Tracking: {tracker.uri}")
        say(f"Compare:  {tracker.command}")
        tracker.reap()
        return _Sweep(file, root, folder, tracker).run()


def resume_sweep(root: Root, name: str, workers: int | None = None) -> dict[str, Any]:
    """Go on with a sweep from the configuration that it began with.

    Raises:
        InputError: If there is no such sweep.
    """
    config = RunFolder(root, name).config()
    if config["kind"] != "sweep":
        raise InputError(f"{name} is no sweep; run its train command again to go on with it.")
    value = config["file"]
    if workers is not None:
        value["scheduling"]["workers"] = workers
    return run_sweep(make(SweepFile, Document(value, str(root.runs / name / CONFIG), {})), root)


class _Sweep:
    """One run of a sweep in this process."""

    def __init__(self, file: SweepFile, root: Root, folder: RunFolder, tracker: Tracker) -> None:
        self.file = file
        self.root = root
        self.folder = folder
        self.tracker = tracker
        self.trials = {trial.name: trial for trial in file.trials()}
        self.logs: dict[str, RunLog] = {}
        self.tags: dict[str, str] = {}
        self.began = time.monotonic()
        self.parts: dict[str, float] = {}

    def run(self) -> dict[str, Any]:
        """Go through the phases; every run opened is ended, however this ends."""
        with ExitStack() as stack:
            parent = stack.enter_context(finishing(self.tracker.open("sweep")))
            stack.enter_context(self._ending_trials())
            with self._timed("start"):
                wanted = self.file.scheduling.workers
                stack.enter_context(ray_session(cpus=max(wanted or 1, available_cpus())))
            workers = cluster_workers(wanted)
            with self._timed("record"):
                data, collected = record(self.file.data, self.root, workers)
            protocol = make_protocol(self.file.evaluate, data)
            self._describe(parent, data, protocol)
            parent.log_metrics(collected)
            with self._timed("train"):
                failures = self._train(data, parent)
            with self._timed("judge"):
                failures |= self._judge(data, protocol, failures, workers, parent)
            return self._conclude(parent, protocol, failures)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        """Note how long a part of the sweep takes."""
        began = time.monotonic()
        yield
        self.parts[part] = round(time.monotonic() - began, 1)

    @contextmanager
    def _ending_trials(self) -> Iterator[None]:
        """End the runs of trials that are still open when the sweep is interrupted or breaks."""
        status = "KILLED"
        try:
            yield
        except LanistaError:
            status = "FAILED"
            raise
        finally:
            for log in self.logs.values():
                if not log.finished:
                    log.finish(status)

    def _describe(self, parent: RunLog, data: Data, protocol: GoalProtocol) -> None:
        """Write every hash to disk and to the parent's run before any training."""
        config = self.folder.add_hashes(data.hashes())
        self.tags = {
            "git.commit": config["git"]["commit"],
            "git.dirty": config["git"]["dirty"],
            "catalogue_sha256": config["hashes"]["catalogue_sha256"],
            "data_manifest_sha256": config["hashes"]["data_manifest_sha256"],
            "engine_sha256": config["hashes"]["engine"]["sha256"],
            "identity": config["identity"],
        }
        write_json(self.folder.path / SWEEP, self._for_report(config, data, protocol))
        parent.set_tags(self.tags)
        parent.log_params({"sweep": self._sweep_params(), "versions": config["versions"]})
        parent.log_json(config, "config.json")
        parent.log_json(to_plain(protocol), "protocol.json")
        self.data = data

    def _for_report(
        self, config: dict[str, Any], data: Data, protocol: GoalProtocol
    ) -> dict[str, Any]:
        totals = data.store.manifest["totals"]
        left_out = (
            f"{len(protocol.goals)} of {len(protocol.goal_base)} goals, {protocol.episodes} "
            f"episodes each with a cap of {protocol.step_cap} steps; batches of "
            f"{self.file.train.batch_size}, {self.file.train.steps} updates"
        )
        return {
            "name": self.file.name,
            "facts": {
                "git commit": config["git"]["commit"],
                "files differ from it": config["git"]["dirty"],
                "configuration": config["identity"],
                "catalogue": config["hashes"]["catalogue_sha256"],
                "engine": " ".join(config["hashes"]["engine"].values()),
                **{f"version of {name}": text for name, text in config["versions"].items()},
            },
            "corpus": {
                "folder": str(data.folder),
                "manifest": data.store.manifest_sha256,
                "episodes": str(totals["episodes"]),
                "steps": str(totals["steps"]),
                "goals": f"{len(data.goals)} by rule {data.rule}",
            },
            "subset": left_out,
            "commands": [f"lanista resume {self.file.name}", f"lanista report {self.file.name}"],
        }

    def _sweep_params(self) -> dict[str, Any]:
        plain = to_plain(self.file)
        return {name: plain[name] for name in ("name", "data", "evaluate")}

    def _open(self, name: str, parent: RunLog) -> RunLog:
        """Open or adopt a trial's run, once in this process."""
        if name not in self.logs:
            trial = self.trials[name]
            tags = {**self.tags, "agent": trial.label}
            log = self.tracker.open("trial", name, parent=parent.run_id, tags=tags)
            plain = to_plain(trial)
            log.log_params({**plain, "sweep": self._sweep_params()})
            log.log_json(self.folder.config(), "config.json")
            log.log_json(plain, "trial.json")
            log.log_dataset(
                self.data.folder.name, str(self.data.folder), self.data.store.manifest_sha256
            )
            self.logs[name] = log
        return self.logs[name]

    def _train(self, data: Data, parent: RunLog) -> dict[str, str]:
        from lanista.platform.tuning import train_with_tune

        folders = {name: self.folder.trial(trial) for name, trial in self.trials.items()}
        missing = [
            trial for name, trial in self.trials.items() if not (folders[name] / TRAINED).exists()
        ]
        attempt = time.strftime("%Y%m%d-%H%M%S")
        updates: dict[str, int] = {}
        with progress(len(missing) * self.file.train.steps, "train") as advance:

            def moved(name: str, update: int) -> None:
                advance(update - updates.get(name, 0), note=name)
                updates[name] = update

            return train_with_tune(
                missing,
                folders,
                data,
                self.file.scheduling,
                self.folder.path / "tune" / attempt,
                lambda name: self._open(name, parent),
                moved,
            )

    def _judge(
        self,
        data: Data,
        protocol: GoalProtocol,
        failed: dict[str, str],
        workers: int,
        parent: RunLog,
    ) -> dict[str, str]:
        """Judge what is trained and not judged yet; a finished trial's run ends here."""
        failures: dict[str, str] = {}
        plays = len(protocol.goals) * protocol.episodes
        with (
            progress(plays * (len(self.trials) - len(failed)), "judge") as advance,
            RayExecutor(
                workers, hang_timeout_s=self.file.evaluate.hang_timeout_s, notify=say
            ) as executor,
        ):
            for name, trial in self.trials.items():
                folder = self.folder.trial(trial)
                if name in failed:
                    self._open(name, parent).finish("FAILED")
                    continue
                if (folder / EVALUATION).exists():
                    advance(plays)
                    continue
                try:
                    self._judge_trial(
                        folder,
                        data,
                        protocol,
                        executor,
                        self._open(name, parent),
                        lambda made, _, name=name: advance(made, note=name),
                    )
                except RunError as error:
                    write_error(folder, str(error))
                    failures[name] = str(error)
                    self.logs[name].finish("FAILED")
        return failures

    def _judge_trial(
        self,
        folder: Path,
        data: Data,
        protocol: GoalProtocol,
        executor: RayExecutor,
        log: RunLog,
        on_unit: Any,
    ) -> None:
        began = time.monotonic()
        checkpoint = Path(read_trained(folder)["checkpoint"])
        found = judge(
            checkpoint,
            protocol,
            data,
            executor,
            greedy=self.file.evaluate.greedy,
            scratch=folder / "scratch",
            on_unit=on_unit,
        )
        log.log_metrics(evaluation_metrics(found) | {"evaluate/seconds": time.monotonic() - began})
        log.log_folder(checkpoint, "checkpoint")
        value = found.to_json()
        log.log_json(value["summary"], "evaluation_summary.json")
        # The file comes last: what it marks as done is not looked at again, its run neither.
        log.finish()
        write_json(folder / EVALUATION, value)

    def _conclude(
        self, parent: RunLog, protocol: GoalProtocol, failures: dict[str, str]
    ) -> dict[str, Any]:
        judged = {
            name: Evaluation.from_json(read_json(self.folder.trial(trial) / EVALUATION))
            for name, trial in self.trials.items()
            if (self.folder.trial(trial) / EVALUATION).exists()
        }
        by_label: dict[str, list[Evaluation]] = {}
        for name, found in judged.items():
            by_label.setdefault(self.trials[name].label, []).append(found)
        for name, trial in self.trials.items():
            self.folder.write_curves(trial)
            if name in judged:
                updates = str(self.file.train.steps)
                self.folder.set_status(trial, "finished", updates=updates)
            else:
                reason = read_error(self.folder.trial(trial)) or failures.get(name, "")
                self.folder.set_status(trial, "failed", reason)
        self._register(judged, parent)
        with self._timed("report"):
            report = self._report() if judged else None
        seconds = time.monotonic() - self.began
        parent.log_metrics(
            {
                "sweep/trials": float(len(self.trials)),
                "sweep/finished": float(len(judged)),
                "sweep/failed": float(len(failures)),
                "sweep/seconds": seconds,
            },
            anew=True,
        )
        if report is not None:
            parent.log_file(report, "report")
        result = {
            "name": self.file.name,
            "trials": len(self.trials),
            "finished": len(judged),
            "failed": len(failures),
            "failures": [
                {"trial": name, "error": read_error(self.folder.trial(self.trials[name])) or error}
                for name, error in failures.items()
            ],
            "table": make_table(by_label),
            "parent_run_id": parent.run_id,
            "report": str(report) if report else None,
            "tracking_uri": self.tracker.uri,
            "compare": self.tracker.comparison,
            "protocol": {
                "game": protocol.game,
                "goals": len(protocol.goals),
                "goals_in_all": len(protocol.goal_base),
                "episodes": protocol.episodes,
                "step_cap": protocol.step_cap,
                "batch_size": self.file.train.batch_size,
                "updates": self.file.train.steps,
            },
            "seconds": seconds,
            "parts": self.parts,
        }
        write_json(self.folder.path / RESULT, result)
        return result

    def _register(self, judged: dict[str, Evaluation], parent: RunLog) -> None:
        """Register the best seed of each agent, by success rate, under the alias ``best``."""
        best: dict[str, tuple[float, Trial]] = {}
        for name, found in judged.items():
            trial = self.trials[name]
            rate = found.success_rate.value
            if trial.label not in best or rate > best[trial.label][0]:
                best[trial.label] = (rate, trial)
        for label, (_, trial) in best.items():
            run_id = self._open_finished(trial.name, parent)
            model = f"{self.file.name}.{slug(label)}"
            self.tracker.register(run_id, model, "checkpoint", "best")

    def _open_finished(self, name: str, parent: RunLog) -> str:
        """Return the run id of a trial that was judged in this process or an earlier one."""
        if name in self.logs:
            return self.logs[name].run_id
        found = self.tracker.find(name)
        if found is None:  # the tracking database was removed since
            log = self._open(name, parent)
            folder = self.folder.trial(self.trials[name])
            log.log_folder(Path(read_trained(folder)["checkpoint"]), "checkpoint")
            log.finish()
            return log.run_id
        return found

    def _report(self) -> Path:
        from lanista.evaluation.report import collect_report_input, write_report

        content = collect_report_input(self.folder.path)
        return Path(write_report(content, self.folder.path / "report.html"))
