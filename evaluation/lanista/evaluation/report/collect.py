"""Reading a sweep's folder into a report's input."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lanista.envs.errors import InputError, LanistaError
from lanista.evaluation.evaluation import Evaluation
from lanista.evaluation.findings import merge_findings, read_json
from lanista.evaluation.paths import RecordedPath, merge_paths
from lanista.evaluation.report.inputs import AgentReport, ReportInput, VideoClip

_LONGEST_VIDEO = 600


def collect_report_input(
    sweep_folder: Path, *, videos: int = 4, game_videos: bool = True
) -> ReportInput:
    """Read what a sweep left in its folder.

    The folder ``runs/NAME/`` holds, all JSON in UTF-8::

        sweep.json                  {
                                      "name": str,
                                      "title": str,              (optional, the name by default)
                                      "facts": {str: str},       git state, configuration, hashes
                                      "corpus": {str: str},      the data that was learned from
                                      "subset": str,             (optional) what was left out
                                      "commands": [str, …]       (optional) how to reproduce it
                                      …                          anything else is left alone
                                    }
        trials/<trial>/trial.json   {
                                      "label": str,              unique among the trials
                                      "algorithm": str,          as printed: "GC-BC", "GC-DT"
                                      "variant": "simple" | "ca2",
                                      "encoder": str,            "emb", "linear", "mhsa" or ""
                                      "seed": int,               training seed
                                      "options": str,            (optional) "context=20": what a
                                                                 grid sets apart
                                      "status": "finished" | "failed" | …,
                                      "error": str,              (optional) why it failed
                                      "facts": {str: str}        (optional) parameters, updates …
                                    }
        trials/<trial>/evaluation.json   Evaluation.to_json()
        trials/<trial>/curves.json       (optional) {metric: [[update, value], …]}
        trials/<trial>/checkpoint/       (not read here)

    A trial without ``evaluation.json`` is listed among the failed with its ``error`` (or
    ``status``). What this function makes, and keeps for the next time::

        paths/<function>.json       the shortest path to each function reached by any agent
        findings/<finding>.json     what broke the game
        videos/<function>.mp4       a few of the paths as videos, trace beside the picture

    Agents come sorted by algorithm, options, Simple before CA2, encoder and seed.

    Args:
        sweep_folder: ``runs/NAME``.
        videos: How many videos to show at most.
        game_videos: Whether to play the game for videos that are not there yet.

    Raises:
        InputError: If the folder is no sweep's, a file in it is broken, or no trial was judged.
    """
    from lanista.evaluation.findings import save_findings
    from lanista.evaluation.paths import save_paths

    if not (sweep_folder / "sweep.json").is_file():
        raise InputError(f"{sweep_folder} is no sweep's folder: it has no sweep.json.")
    sweep = read_json(sweep_folder / "sweep.json", "sweep")
    agents: list[AgentReport] = []
    failed: dict[str, str] = {}
    for folder in sorted((sweep_folder / "trials").glob("*/")):
        trial = read_json(folder / "trial.json", "trial")
        if (folder / "evaluation.json").is_file():
            agents.append(_agent(folder, trial))
        else:
            reason = trial.get("error") or trial.get("status") or "it was not judged"
            failed[str(trial.get("label", folder.name))] = str(reason)
    if not agents:
        raise InputError(
            f"No trial of {sweep_folder} has been judged yet; run or resume the sweep first."
        )
    agents = _told_apart(agents)
    agents.sort(
        key=lambda agent: (
            agent.algorithm,
            agent.options,
            agent.variant == "ca2",
            agent.encoder,
            agent.seed,
        )
    )
    findings = merge_findings(item for agent in agents for item in agent.evaluation.findings)
    paths = merge_paths(agent.evaluation.paths for agent in agents)
    _drop_old_videos(sweep_folder, paths)
    save_findings(findings, sweep_folder / "findings")
    save_paths(paths, sweep_folder / "paths")
    return ReportInput(
        title=str(sweep.get("title") or sweep.get("name") or sweep_folder.name),
        agents=tuple(agents),
        facts=_strings(sweep.get("facts")),
        corpus=_strings(sweep.get("corpus")),
        subset=str(sweep.get("subset", "")),
        commands=tuple(map(str, sweep.get("commands", ()))),
        failed=failed,
        findings=findings,
        paths=paths,
        videos=_videos(sweep_folder, agents, paths, videos, game_videos),
        folder=f"{sweep_folder}/",
        recorded=_recorded(sweep.get("corpus"), agents[0].evaluation.catalogue.sha256),
    )


def _recorded(corpus: Any, catalogue_sha256: str) -> frozenset[str] | None:
    """Return the functions that some recorded step called, if the store is still as it was."""
    facts = _strings(corpus)
    try:
        manifest = read_json(Path(facts["folder"]) / "manifest.json", "manifest")
        if (manifest["manifest_sha256"], manifest["catalogue_sha256"]) != (
            facts["manifest"],
            catalogue_sha256,
        ):
            return None
        return frozenset(str(row["name"]) for row in manifest["functions"] if row["steps"] > 0)
    except (InputError, KeyError, TypeError):
        return None


def _told_apart(agents: list[AgentReport]) -> list[AgentReport]:
    """Give agents that would pass for one and the same their labels as options."""
    counts = Counter((agent.group, agent.seed) for agent in agents)
    twice = {group for (group, _), count in counts.items() if count > 1}
    return [
        replace(agent, options=agent.label.removesuffix(f", seed {agent.seed}"))
        if agent.group in twice
        else agent
        for agent in agents
    ]


def _agent(folder: Path, trial: Mapping[str, Any]) -> AgentReport:
    curves: dict[str, list[tuple[float, float]]] = {}
    try:
        if (folder / "curves.json").is_file():
            for metric, points in read_json(folder / "curves.json", "curves").items():
                curves[metric] = [
                    (float(update), float(value)) for update, value in points if value is not None
                ]
        variant = trial["variant"]
        if variant not in {"simple", "ca2"}:
            raise ValueError(f"variant {variant!r} is neither simple nor ca2")
        return AgentReport(
            label=str(trial["label"]),
            algorithm=str(trial["algorithm"]),
            variant=variant,
            encoder=str(trial.get("encoder") or ""),
            seed=int(trial["seed"]),
            options=str(trial.get("options") or ""),
            evaluation=Evaluation.from_json(read_json(folder / "evaluation.json", "evaluation")),
            curves=curves,
            facts=_strings(trial.get("facts")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"The trial {folder} is broken: {error!r}.") from error


def _drop_old_videos(folder: Path, paths: tuple[RecordedPath, ...]) -> None:
    """Remove the videos of functions to which there is another path by now."""
    from lanista.evaluation.video import still_of

    for path in paths:
        video = _video_of(folder, path)
        if not video.exists():
            continue
        try:
            shown = RecordedPath.from_json(read_json(folder / "paths" / path.file_name, "path"))
        except InputError:
            shown = None
        if shown != path:
            video.unlink()
            still_of(video).unlink(missing_ok=True)


def _video_of(folder: Path, path: RecordedPath) -> Path:
    return folder / "videos" / f"{path.file_name.removesuffix('.json')}.mp4"


def _videos(
    folder: Path,
    agents: list[AgentReport],
    paths: tuple[RecordedPath, ...],
    limit: int,
    make: bool,
) -> tuple[VideoClip, ...]:
    from lanista.evaluation.replay import replay
    from lanista.evaluation.video import write_video

    goals = {name for agent in agents for name in agent.evaluation.goal_base}
    clips: list[VideoClip] = []
    for path in pick_for_video(paths, goals, limit):
        file = _video_of(folder, path)
        if not file.exists():
            if not make:
                continue
            try:
                result = replay(path)
                assert result.episode is not None
                write_video(result.episode, path.tape.scheme, file, goal=path.function)
            except LanistaError:
                # A report without this video is better than none: the game may be gone by now.
                continue
        clips.append(
            VideoClip(
                caption=f"{path.function} reached after {path.steps} steps in world "
                f"{path.tape.world}",
                file=file,
                command=f"lanista replay {folder / 'paths' / path.file_name}",
            )
        )
    return tuple(clips)


def pick_for_video(
    paths: tuple[RecordedPath, ...], goals: set[str], limit: int
) -> list[RecordedPath]:
    """Choose the goals that took longest to reach, each from another play."""
    chosen: list[RecordedPath] = []
    seen: set[tuple[int, str | None, str]] = set()
    wanted = [path for path in paths if path.function in goals and path.steps <= _LONGEST_VIDEO]
    for path in sorted(wanted, key=lambda item: (-item.steps, item.function)):
        play = path.tape.world, path.tape.goal, path.tape.player
        if play not in seen and len(chosen) < limit:
            seen.add(play)
            chosen.append(path)
    return chosen


def _strings(value: Any) -> dict[str, str]:
    return {str(name): str(item) for name, item in (value or {}).items()}
