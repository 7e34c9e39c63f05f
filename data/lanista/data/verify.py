"""Looking a store over: which files are corrupt, altered, missing or strange."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lanista.data.episode_file import (
    EncodedEpisode,
    content_hash,
    decode_episode,
    file_name,
    hash_array,
    read_row,
)
from lanista.data.files import TEMPORARY, only_writer, read_json, write_json
from lanista.data.manifest import Tally, check_header, hash_manifest
from lanista.data.store import (
    ACTION_DEPENDENT_FILE,
    EPISODES,
    HEADER_FILE,
    MANIFEST_FILE,
    check_action_dependent,
    check_manifest,
    check_row,
)
from lanista.envs.errors import InputError

QUARANTINE = "quarantine"
FINDINGS = "findings"
"""Folder of a recording for what broke in it, which can be written anew at any time."""
QUARANTINE_FILE = "quarantine.json"


@dataclass(frozen=True)
class Problem:
    """Something wrong with one file of a store.

    Attributes:
        file: Its name below the store's folder.
        what: What is wrong: begins with ``missing``, ``corrupt``, ``altered`` or ``unknown``.
    """

    file: str
    what: str


@dataclass(frozen=True)
class Verification:
    """What a look over a store found.

    Attributes:
        problems: All that is wrong, sorted by file.
        sound: What the sound episode files say of themselves.
        header: The store's header; ``None`` if it is lost.
        state: ``open`` while a recording goes on or was interrupted, else ``closed``.
    """

    problems: tuple[Problem, ...]
    sound: tuple[EncodedEpisode, ...]
    header: Mapping[str, Any] | None
    state: str

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(path: Path | str) -> Verification:
    """Read every file of a store and compare it with what the manifest says; changes nothing.

    Raises:
        InputError: If there is no store: the folder has neither header nor manifest.
    """
    path = Path(path)
    if not any((path / name).is_file() for name in (HEADER_FILE, MANIFEST_FILE)):
        raise InputError(f"{path} is no episode store: it has no {HEADER_FILE}.")
    problems: list[Problem] = []
    header, manifest = _read_descriptions(path, problems)
    state = str(manifest["state"]) if manifest is not None else "open"
    listed = {} if manifest is None else {row["file"]: row for row in manifest["episodes"]}
    sound: list[EncodedEpisode] = []
    for file in sorted(listed.keys() | set(_episode_files(path))):
        found = _check_file(path, file, listed.get(file), header, state)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            sound.append(found)
    if (
        manifest is not None
        and header is not None
        and listed.keys() == {item.row["file"] for item in sound}
    ):
        tally = Tally()
        for encoded in sound:
            tally.add(encoded)
        if tally.manifest(header)["manifest_sha256"] != hash_manifest(manifest):
            problems.append(Problem(MANIFEST_FILE, "altered: its counts are not its files'"))
    problems += _check_others(path)
    return Verification(
        tuple(sorted(problems, key=lambda problem: problem.file)), tuple(sound), header, state
    )


def quarantine(path: Path | str) -> Verification:
    """Set aside every file that has a problem, so that the rest of a store is usable again.

    Bad files move into ``quarantine/``; ``quarantine.json`` beside the manifest says what was set
    aside and why. The manifest is made anew from the sound files. The store's recording can then
    go on and play the lost episodes again.

    Returns:
        What was wrong before.

    Raises:
        InputError: If header and manifest are both lost, or the folder cannot be written to.
    """
    path = Path(path)
    with only_writer(path):
        found = verify(path)
        if found.ok:
            return found
        if found.header is None:
            raise InputError(
                f"{path} cannot be mended: neither {HEADER_FILE} nor {MANIFEST_FILE} is sound."
            )
        entries = read_json(path / QUARANTINE_FILE) if (path / QUARANTINE_FILE).exists() else []
        if not isinstance(entries, list):
            raise InputError(
                f"{path / QUARANTINE_FILE} is corrupt: it holds no list; move it away."
            )
        moves = {problem.file: _place_aside(path, problem.file) for problem in found.problems}
        entries += [asdict(item) | {"moved_to": moves[item.file]} for item in found.problems]
        # First the record, then the moves, then what stands in for the files: a kill in between
        # loses nothing.
        write_json(path / QUARANTINE_FILE, entries)
        for file, target in moves.items():
            if target is not None:
                (path / target).parent.mkdir(parents=True, exist_ok=True)
                (path / file).replace(path / target)
        write_json(path / HEADER_FILE, found.header)
        tally = Tally()
        for encoded in found.sound:
            tally.add(encoded)
        manifest = tally.manifest(found.header) | {"state": "closed"}
        if (path / ACTION_DEPENDENT_FILE).exists():
            manifest["goals"]["action_dependent"] = read_json(path / ACTION_DEPENDENT_FILE)
        write_json(path / MANIFEST_FILE, manifest)
    return found


def _read_descriptions(
    path: Path, problems: list[Problem]
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Read header and manifest; where one is bad, the other stands in for it."""
    header: dict[str, Any] | None = None
    manifest: dict[str, Any] | None = None
    try:
        header = read_json(path / HEADER_FILE)
        check_header(header, HEADER_FILE)
    except InputError as error:
        header = None
        problems.append(_problem(path, HEADER_FILE, error))
    try:
        manifest = read_json(path / MANIFEST_FILE)
        check_manifest(manifest, {}, path / MANIFEST_FILE)
    except InputError as error:
        manifest = None
        problems.append(_problem(path, MANIFEST_FILE, error))
    if header is not None and manifest is not None:
        try:
            check_manifest(manifest, header, path / MANIFEST_FILE)
        except InputError as error:
            header = None
            problems.append(_problem(path, HEADER_FILE, error))
    if header is None and manifest is not None:
        names = ("format", "game", "engine", "catalogue", "catalogue_sha256", "recipe")
        header = {name: manifest[name] for name in names}
    return header, manifest


def _episode_files(path: Path) -> Iterator[str]:
    for item in (path / EPISODES).glob("*.parquet"):
        if item.is_file() and not item.name.startswith(TEMPORARY):
            yield f"{EPISODES}/{item.name}"


def _check_file(
    path: Path,
    file: str,
    listed: Mapping[str, Any] | None,
    header: Mapping[str, Any] | None,
    state: str,
) -> Problem | EncodedEpisode:
    try:
        payload = (path / file).read_bytes()
    except FileNotFoundError:
        return Problem(file, "missing")
    except OSError as error:
        return Problem(file, f"corrupt: it cannot be read ({error.strerror})")
    same = listed is not None and hashlib.sha256(payload).hexdigest() == listed["sha256"]
    if listed is not None and not same:
        if len(payload) < listed["bytes"]:
            return Problem(file, f"corrupt: cut from {listed['bytes']} to {len(payload)} bytes")
        return Problem(file, "altered: its bytes do not match the manifest's hash")
    try:
        encoded = read_row(payload, file)
        episode = decode_episode(payload, file)
        if header is not None:
            check_row(encoded.row, file, header)
    except InputError as error:
        return _problem(path, file, error)
    row = encoded.row
    observations_sha256 = row["observations_sha256"]
    if episode.observations is not None:
        observations_sha256 = hash_array(episode.observations)
    if content_hash(episode, observations_sha256) != row["content_sha256"]:
        return Problem(file, "altered: its content does not match its own hash")
    if file_name(episode.key) != file:
        return Problem(file, f"altered: it holds the episode of {file_name(episode.key)}")
    if listed is None and state == "closed":
        return Problem(file, "unknown: the manifest does not list it")
    return encoded


def _check_others(path: Path) -> Iterator[Problem]:
    known = {HEADER_FILE, MANIFEST_FILE, QUARANTINE_FILE, ACTION_DEPENDENT_FILE, ".lock"}
    if (path / ACTION_DEPENDENT_FILE).is_file():
        try:
            check_action_dependent(
                read_json(path / ACTION_DEPENDENT_FILE), path / ACTION_DEPENDENT_FILE
            )
        except InputError as error:
            yield _problem(path, ACTION_DEPENDENT_FILE, error)
    episodes = set(_episode_files(path))
    for item in path.rglob("*"):
        file = item.relative_to(path).as_posix()
        if item.is_dir() or file in known or file in episodes:
            continue
        if file.startswith((f"{QUARANTINE}/", f"{FINDINGS}/")):
            continue
        if item.name.startswith(TEMPORARY):
            yield Problem(file, "unknown: left half written by a recording that was killed")
        else:
            yield Problem(file, "unknown: no part of a store")


def _problem(path: Path, file: str, error: InputError) -> Problem:
    """Turn an error that names a file into a problem that begins with its kind."""
    text = str(error).replace(f"{path / file} ", "").replace(f"{file} ", "").rstrip(".")
    text = text.removeprefix("is ")
    kinds = ("missing", "corrupt", "altered", "unknown")
    return Problem(file, text if text.startswith(kinds) else f"corrupt: {text}")


def _place_aside(path: Path, file: str) -> str | None:
    """Say where a file is to be set aside, ``None`` where it is not there."""
    if not (path / file).exists():
        return None
    target = path / QUARANTINE / file
    number = 0
    while target.exists():
        number += 1
        target = path / QUARANTINE / f"{file}.{number}"
    return target.relative_to(path).as_posix()
