"""What README.md and docs/ tell people to type is true: parsed everywhere, run where marked."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from lanista.platform.cli.app import app

REPOSITORY = Path(__file__).resolve().parents[1]
ROBOT = REPOSITORY / "envs" / "lanista" / "envs" / "godot" / "multilevel_robot"
DOCUMENTS = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
BLOCK = re.compile(
    r"^(?P<run><!-- run -->\n)?```(?P<language>\w+)\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL
)


def blocks(document: Path, language: str) -> Iterator[tuple[bool, str]]:
    """Yield the fenced blocks of a language, and whether they are marked to be run."""
    for match in BLOCK.finditer(document.read_text(encoding="utf-8")):
        if match["language"] == language:
            yield bool(match["run"]), match["body"]


def commands(document: Path) -> Iterator[tuple[bool, list[str]]]:
    """Yield the commands of a document's ``bash`` blocks as argument lists."""
    for run, body in blocks(document, "bash"):
        for line in body.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield run, words


def named(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_every_make_target_and_lanista_option_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    for _, words in commands(document):
        while words and "=" in words[0]:
            words = words[1:]
        if words[0] == "make":
            assert set(words[1:]) <= targets, words
        if Path(words[0]).name != "lanista":
            continue
        command = typer.main.get_command(app)
        rest = words[1:]
        while getattr(command, "commands", None) and rest and not rest[0].startswith("-"):
            assert rest[0] in command.commands, words
            command, rest = command.commands[rest[0]], rest[1:]
        options = {name for item in command.params for name in item.opts} | {"--help"}
        for word in rest:
            if word == "--":
                break
            if word.startswith("--"):
                assert word.partition("=")[0] in options, words


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{named(document)}: {target}"


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_marked_blocks_run(document: Path, tmp_path: Path) -> None:
    """Run a document's marked commands and Python blocks, in order, in a fresh root."""
    here = REPOSITORY
    if "my_game" in document.read_text(encoding="utf-8"):
        # Whoever follows such a page has a project; the one of the robot stands in for it.
        here = tmp_path
        shutil.copytree(ROBOT, here / "my_game", ignore=shutil.ignore_patterns(".godot"))
    environment = os.environ | {
        "LANISTA_ROOT": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for language, prefix in (
        ("bash", ["bash", "-euo", "pipefail", "-c"]),
        ("python", [sys.executable, "-c"]),
    ):
        for run, body in blocks(document, language):
            if run:
                done = subprocess.run(
                    [*prefix, body], cwd=here, env=environment, capture_output=True,
                    text=True, timeout=900, stdin=subprocess.DEVNULL,
                )  # fmt: skip
                assert done.returncode == 0, f"{body}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def test_the_front_door_has_commands_that_are_run() -> None:
    marked = [words for run, words in commands(REPOSITORY / "README.md") if run]
    assert {"trace", "collect", "train", "evaluate"} <= {
        words[1] for words in marked if Path(words[0]).name == "lanista"
    }
