"""``lanista replay``."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from lanista.platform.cli.options import JsonOption, RootOption, SeedOption
from lanista.platform.cli.output import emit, make_table, say


def replay(
    file: Annotated[Path, typer.Argument(help="A recorded path or finding.")],
    video: Annotated[
        Path | None, typer.Option("--video", help="Write what is played as an mp4.")
    ] = None,
    hang_timeout: Annotated[
        float, typer.Option("--hang-timeout", help="Seconds without a step that count as a hang.")
    ] = 60.0,
    root: RootOption = None,
    as_json: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Play a recorded path or finding again, and say whether the same happened.

    Example: lanista replay runs/demo/paths/crafter.objects-Plant.damage.json --video plant.mp4
    """
    # A recording holds its actions: nothing is drawn.
    del seed
    from lanista.envs.errors import InputError
    from lanista.evaluation.paths import RecordedPath
    from lanista.evaluation.replay import load_recording
    from lanista.evaluation.replay import replay as play_again
    from lanista.evaluation.video import write_video
    from lanista.platform.root import Root

    recording = load_recording(Root.find(root).input(file))
    if video is not None:
        if video.is_dir():
            raise InputError(f"{video} is a folder; name a file for the video.")
        try:
            video.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=video.parent).close()
        except OSError as error:
            raise InputError(
                f"{video} cannot be written ({error.strerror}); choose another place."
            ) from error
    result = play_again(recording, hang_after_s=hang_timeout)
    if video is not None and (result.episode is None or not result.steps):
        lost = (
            "the play took its process with it" if result.steps else "the game broke at its reset"
        )
        say(f"No video: {lost}.")
        video = None
    elif video is not None and result.episode is not None:
        goal = recording.function if isinstance(recording, RecordedPath) else recording.tape.goal
        write_video(result.episode, recording.tape.scheme, video, goal=goal)
    value = {**result.to_json(), "video": str(video.resolve()) if video else None}
    difference = result.first_difference
    has_goal = isinstance(recording, RecordedPath) or recording.tape.goal is not None
    shown = make_table(
        "Replay",
        {"": "left", "found": "left"},
        [
            ["reproduced", "yes" if result.reproduced else "no"],
            ["steps", str(result.steps)],
            *([["reached", "yes" if result.reached else "no"]] if has_goal else []),
            ["exception", result.exception or "none"],
            [
                "first difference",
                "none"
                if difference is None
                else f"{difference.field}, step {difference.step}: recorded "
                f"{difference.recorded}, now {difference.replayed}",
            ],
        ],
    )
    emit(value, as_json=as_json, shown=shown)
    if not result.reproduced:
        raise typer.Exit(1)
