"""A play as an mp4: it decodes, shows each step, and shows the game's own pixels."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from imageio_ffmpeg import get_ffmpeg_exe
from vault_game import SECRET, catalogue

from lanista.data.episode import Episode
from lanista.envs.errors import InputError
from lanista.evaluation.findings import Tape
from lanista.evaluation.replay import play_tape
from lanista.evaluation.video import still_of, write_video

WIDTH, HEIGHT = 848, 448


@pytest.fixture(scope="module")
def played() -> Episode:
    tape = Tape(
        "vault_game:GAME",
        {},
        "class",
        catalogue().sha256,
        world=3,
        world_fingerprint="",
        player="p",
        goal=None,
        actions=(*SECRET, 4, 4, 1),
    )
    return play_tape(tape)


def frames(file: Path) -> np.ndarray:
    command = [get_ffmpeg_exe(), "-loglevel", "error", "-i", str(file)]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    return np.frombuffer(done.stdout, dtype=np.uint8).reshape(-1, HEIGHT, WIDTH, 3)


def test_every_step_is_shown_with_its_picture(tmp_path: Path, played: Episode) -> None:
    file = tmp_path / "videos" / "vault.mp4"
    write_video(played, "class", file, goal="vault_game:Vault.grab")
    shown = frames(file)
    assert len(shown) == played.steps + 6
    assert played.observations is not None
    for step in range(played.steps):
        small = shown[step, 28::56, 28:HEIGHT:56].astype(int)
        assert np.abs(small - played.observations[step + 1].astype(int)).mean() < 12
    # The panel beside the picture changes when the goal is highlighted.
    assert np.abs(shown[2, :, HEIGHT:].astype(int) - shown[3, :, HEIGHT:].astype(int)).max() > 60
    assert file.stat().st_size < 60_000
    assert still_of(file).read_bytes()[:3] == b"\xff\xd8\xff"
    assert sorted(path.name for path in file.parent.iterdir()) == ["vault.jpg", "vault.mp4"]


def test_a_long_play_shows_its_last_steps(tmp_path: Path, played: Episode) -> None:
    file = tmp_path / "short.mp4"
    write_video(played, "class", file, last_steps=2)
    assert len(frames(file)) == 2 + 6


def test_numbers_are_drawn_where_the_game_shows_no_picture(tmp_path: Path, played: Episode) -> None:
    steps = played.steps
    seen = np.zeros((steps + 1, 3), np.float32)
    seen[:, 0] = np.arange(steps + 1)
    seen[:, 1] = -np.arange(steps + 1)
    told = {
        "level": np.full(steps, 3),
        "position.0": np.linspace(0.0, 4.0, steps),
        "position.2": np.linspace(0.0, -4.0, steps),
        "flying": np.arange(steps) % 2 == 0,
        "speed": np.array([np.nan, *np.linspace(0, 1, steps - 1)]),
    }
    play = replace(played, observations=seen, step_info=told)
    file = tmp_path / "numbers.mp4"
    write_video(play, "class", file)
    shown = frames(file).astype(int)
    assert len(shown) == steps + 6
    strip = shown[steps, :210, :HEIGHT]
    column = HEIGHT // 64
    # The first number rises from blue to orange, the second falls, the third never changes.
    for row, first, last in ((35, "blue", "orange"), (105, "orange", "blue")):
        for place, colour in ((0, first), (steps, last)):
            red, _, blue = strip[row, place * column + column // 2]
            assert (red > blue) == (colour == "orange")
    third = strip[175, : (steps + 1) * column]
    assert np.abs(third - third[0]).max() < 30
    # The way from above grows towards the upper right.
    way = shown[:, 236:444, 224:444]
    orange = [np.argwhere((f[:, :, 0] > 180) & (f[:, :, 2] < 120)).mean(axis=0) for f in way]
    assert orange[0][0] > orange[-1][0] + 100
    assert orange[0][1] < orange[-1][1] - 100


def test_what_cannot_be_shown_is_refused(tmp_path: Path, played: Episode) -> None:
    blind = replace(played, observations=None)
    with pytest.raises(InputError, match="kept without"):
        write_video(blind, "class", tmp_path / "blind.mp4")
    odd = replace(played, observations=np.zeros((7, 5, 2)))
    with pytest.raises(InputError, match=r"pictures or vectors .* this play has \(5, 2\)"):
        write_video(odd, "class", tmp_path / "odd.mp4")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_video(played, "class", tmp_path / "file" / "x.mp4")
