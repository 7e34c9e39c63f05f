"""A play as a video: a picture of the game, and beside it the calls of each step."""

import contextlib
import io
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from lanista.data.episode import Episode
from lanista.data.files import TEMPORARY, write_atomically
from lanista.envs.errors import InputError, RunError
from lanista.envs.game import Game, load_game
from lanista.envs.tracing.catalogue import Catalogue, Scheme
from lanista.evaluation.pictures import INK, MUTED, PAPER, SIDE, Pictures, cut, font

_PANEL = 400
_MARGIN = 14
_GOAL = (255, 196, 61)
_BROKEN = (255, 110, 100)


def write_video(
    episode: Episode,
    scheme: Scheme,
    file: Path,
    *,
    goal: str | None = None,
    frames_per_second: int = 8,
    last_steps: int = 240,
) -> None:
    """Write a play as an mp4 (H.264) that browsers play and that is small enough to embed.

    Its last frame is written beside it as a JPEG, for pages that show a still before it plays.

    Args:
        episode: A play with its observations: pictures, or vectors of which one is drawn (see
            :class:`lanista.evaluation.pictures.Pictures`).
        scheme: Identity scheme that its trace was recorded under.
        file: Where to.
        goal: Full name of a function to highlight; the play's own goal by default.
        frames_per_second: Steps shown a second.
        last_steps: Longer plays show these last steps only.

    Raises:
        InputError: If the play has nothing to show, or the file cannot be written.
        RunError: If the encoder fails.
    """
    pictures = Pictures(episode)
    game = load_game(episode.key.game)
    if not episode.steps:
        raise InputError("A video needs at least one step; this play has none.")
    painter = _Painter(game, game.catalogue(scheme), goal or episode.key.goal)
    temporary = file.with_name(f"{TEMPORARY}{file.stem}.mp4")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        frames = painter.frames(episode, pictures, last_steps)
        last = _encode(frames, temporary, frames_per_second)
        still = io.BytesIO()
        Image.fromarray(last).save(still, "jpeg", quality=85)
        write_atomically(still_of(file), still.getvalue())
        temporary.replace(file)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def still_of(video: Path) -> Path:
    """Return where the still of a video is."""
    return video.with_suffix(".jpg")


class _Painter:
    """Draws the frames of one play."""

    def __init__(self, game: Game, catalogue: Catalogue, goal: str | None) -> None:
        self._game = game
        self._catalogue = catalogue
        self._goal = goal
        self._goal_id = None if goal is None else catalogue.resolve(goal)

    def frames(
        self, episode: Episode, pictures: Pictures, last_steps: int
    ) -> Iterator[NDArray[np.uint8]]:
        """Yield one frame a step: the picture after it, and the calls that it caused."""
        start = max(0, episode.steps - last_steps)
        reached = False
        for step in range(episode.steps):
            ids, counts = episode.trace(step).bag()
            reached |= self._goal_id is not None and bool(np.any(ids == self._goal_id))
            if step >= start:
                picture = pictures.after(step)
                yield self._frame(episode, step, picture, ids, counts, reached)
        for _ in range(6):
            # Players show the last frame for one frame's time only, which is too short to see.
            yield self._frame(episode, step, picture, ids, counts, reached)

    def _frame(
        self,
        episode: Episode,
        step: int,
        picture: Image.Image,
        ids: NDArray[np.int64],
        counts: NDArray[np.int64],
        reached: bool,
    ) -> NDArray[np.uint8]:
        canvas = Image.new("RGB", (SIDE + _PANEL, SIDE), PAPER)
        canvas.paste(picture, (0, 0))
        draw = ImageDraw.Draw(canvas)
        left = SIDE + _MARGIN
        draw.text((left, 10), f"step {step + 1} of {episode.steps}", INK, font(17))
        action = self._action_name(episode.actions[step])
        draw.text((SIDE + _PANEL // 2, 10), action, INK, font(17))
        top = 36
        if self._goal is not None:
            mark = "reached" if reached else "goal"
            text = f"{mark}: {_short(self._goal)}"
            draw.text((left, top), cut(text, 46), _GOAL if reached else MUTED, font(14))
            top += 22
        if episode.fault is not None and step == episode.steps - 1:
            what = f"{episode.fault.exception} at {episode.fault.where}"
            for line in (what, episode.fault.message):
                draw.text((left, top), cut(line, 52), _BROKEN, font(14))
                top += 20
        total = int(counts.sum())
        draw.text((left, top), f"{total} calls, {len(ids)} functions", MUTED, font(13))
        self._calls(draw, left, top + 22, ids, counts)
        return np.asarray(canvas, dtype=np.uint8)

    def _calls(
        self,
        draw: ImageDraw.ImageDraw,
        left: int,
        top: int,
        ids: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        # The goal first, then the rarest: what is called a hundred times a step says the least.
        order = sorted(range(len(ids)), key=lambda i: (ids[i] != self._goal_id, counts[i], ids[i]))
        height = 17
        room = (SIDE - top - 6) // height
        shown = order if len(order) <= room else order[: room - 1]
        for row, index in enumerate(shown):
            at_goal = ids[index] == self._goal_id
            y = top + row * height
            if at_goal:
                draw.rectangle((left - 6, y - 1, SIDE + _PANEL - 8, y + height - 2), (74, 58, 16))
            colour = _GOAL if at_goal else INK
            name = _short(self._catalogue.name(int(ids[index])))
            draw.text((left + 38, y), cut(name, 44), colour, font(13))
            draw.text((left + 30, y), f"{counts[index]}", MUTED, font(13), anchor="ra")
        if len(shown) < len(order):
            y = top + len(shown) * height
            rest = len(order) - len(shown)
            draw.text((left + 38, y), f"and {rest} more", MUTED, font(13))

    def _action_name(self, action: Any) -> str:
        array = np.asarray(action)
        if array.ndim == 0 and 0 <= int(array) < len(self._game.actions):
            return self._game.actions[int(array)]
        return np.array2string(array, precision=2)


def _encode(
    frames: Iterator[NDArray[np.uint8]], file: Path, frames_per_second: int
) -> NDArray[np.uint8]:
    """Write the frames and return the last one."""
    from imageio_ffmpeg import get_ffmpeg_exe

    command = [get_ffmpeg_exe(), "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24"]
    command += ["-s", f"{SIDE + _PANEL}x{SIDE}", "-r", str(frames_per_second), "-i", "-"]
    command += ["-c:v", "libx264", "-preset", "veryfast", "-crf", "30", "-pix_fmt", "yuv420p"]
    command += ["-threads", "1", "-fflags", "+bitexact", "-map_metadata", "-1"]
    command += ["-movflags", "+faststart", str(file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as encoder:
        frame = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
        assert encoder.stdin is not None
        assert encoder.stderr is not None
        try:
            for frame in frames:
                encoder.stdin.write(frame.tobytes())
            encoder.stdin.close()
        except BrokenPipeError:
            # The encoder ended early; what it says about it is read below.
            pass
        said = encoder.stderr.read().decode(errors="replace").strip()
    if encoder.returncode:
        raise RunError(f"The video encoder failed: {said or encoder.returncode}.")
    return frame


def _short(name: str) -> str:
    return name.rpartition(":")[2]
