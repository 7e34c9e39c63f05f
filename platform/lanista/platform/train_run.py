"""Training one agent as a run of its own: its folder, its MLflow run, its registered model."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from lanista.platform.cli.output import progress, say
from lanista.platform.cluster import ray_session
from lanista.platform.config import to_plain
from lanista.platform.experiment import TrainFile
from lanista.platform.provenance import write_json
from lanista.platform.recording import check_source, record
from lanista.platform.root import Root
from lanista.platform.run_folder import RESULT, RunFolder
from lanista.platform.signals import interruptible
from lanista.platform.tracking import Tracker, finishing
from lanista.platform.training import train_trial


def run_training(file: TrainFile, root: Root) -> dict[str, Any]:
    """Train one agent, go on with it, or return what it came to if it is finished.

    Ray is started only where the data has to be recorded first.

    Returns:
        ``name, checkpoint, updates, loss, seconds, run_id, tracking_uri, compare``.

    Raises:
        InputError: If the file, the data or the tracking server cannot be used, or the name
            belongs to another configuration.
        RunError: If loss or gradient is not a finite number.
    """
    folder = RunFolder(root, file.name)
    with folder.locked(), interruptible():
        folder.begin(file)
        done = folder.result()
        if done is not None:
            return done
        check_source(file.data, root)
        tracker = Tracker(root, file.name)
        say(f"Tracking: {tracker.uri}")
        say(f"Compare:  {tracker.command}")
        tracker.reap()
        with finishing(tracker.open("train")) as log:
            with ray_session() if file.data.collect else nullcontext():
                data, collected = record(file.data, root, None)
            config = folder.add_hashes(data.hashes())
            hashes = config["hashes"]
            log.set_tags(
                {
                    "agent": file.agent.name,
                    "git.commit": config["git"]["commit"],
                    "git.dirty": config["git"]["dirty"],
                    "catalogue_sha256": hashes["catalogue_sha256"],
                    "data_manifest_sha256": hashes["data_manifest_sha256"],
                    "engine_sha256": hashes["engine"]["sha256"],
                    "identity": config["identity"],
                }
            )
            log.log_params({**to_plain(file), "versions": config["versions"]})
            log.log_json(config, "config.json")
            log.log_dataset(data.folder.name, str(data.folder), data.store.manifest_sha256)
            log.log_metrics(collected)
            before = 0
            with progress(file.train.steps, "train") as advance:

                def report(update: int, metrics: dict[str, float]) -> None:
                    nonlocal before
                    advance(update - before, note=f"loss {metrics.get('train/loss', 0):.3f}")
                    before = update
                    log.log_metrics(metrics, update)

                trained = train_trial(file.agent, file.train, data, folder.path, report)
            log.log_folder(Path(trained["checkpoint"]), "checkpoint")
            tracker.register(log.run_id, file.name, "checkpoint", "best")
        result = {
            "name": file.name,
            **trained,
            "run_id": log.run_id,
            "tracking_uri": tracker.uri,
            "compare": tracker.command,
        }
        write_json(folder.path / RESULT, result)
        return result
