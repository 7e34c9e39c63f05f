"""The episode store: a folder of immutable, hashed episode files and a manifest."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lanista.data.episode import Episode, EpisodeKey
from lanista.data.episode_file import (
    EncodedEpisode,
    ObservationMode,
    decode_episode,
    encode_episode,
    file_name,
    read_row,
)
from lanista.data.files import TEMPORARY, read_json, write_atomically, write_json
from lanista.data.manifest import Tally, check_header, hash_json, hash_manifest, make_header
from lanista.data.split import check_split, split_of
from lanista.envs.errors import InputError
from lanista.envs.game import Game, load_game
from lanista.envs.tracing.catalogue import Catalogue

HEADER_FILE = "store.json"
MANIFEST_FILE = "manifest.json"
ACTION_DEPENDENT_FILE = "action_dependent.json"
EPISODES = "episodes"


class EpisodeStore:
    """Recorded episodes in a folder.

    ``store.json`` says what is recorded and never changes; ``episodes/`` holds one immutable file
    a seat and play; ``manifest.json`` lists them and is made anew from them at any time. Use it
    as a context manager, or call :meth:`save` once all is added: until then the manifest on disk
    says that the recording is open, and the next to open the store takes up what it finds.

    Reading needs no lock. Writing is for one process at a time.
    """

    def __init__(self, path: Path, header: dict[str, Any], tally: Tally, *, closed: bool) -> None:
        self.path = path
        self.header = header
        self._tally = tally
        self._closed = closed
        self._manifest: dict[str, Any] | None = None
        self.catalogue: Catalogue = check_header(header, HEADER_FILE)

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        game: Game | str,
        catalogue: Catalogue,
        recipe: Mapping[str, Any] | None = None,
    ) -> Self:
        """Make a new store, or open the one that was made with the same arguments.

        Args:
            path: Its folder; made if it is not there.
            game: The game, or its id.
            catalogue: The functions recorded.
            recipe: How the episodes are recorded, as JSON values. ``observations`` in it is
                ``stored`` (the default) or ``replayed``: whether observations are kept in the
                files, or made anew from world and actions and checked against their hash.

        Raises:
            InputError: If the folder cannot be written to, holds something else, or holds a store
                of another game, engine, catalogue or recipe.
        """
        known = load_game(game) if isinstance(game, str) else game
        return cls.from_header(path, make_header(known.id, known.engine(), catalogue, recipe or {}))

    @classmethod
    def from_header(cls, path: Path | str, header: dict[str, Any]) -> Self:
        """Make a new store with another's header, or open the one that has it; see :meth:`create`.

        Raises:
            InputError: As :meth:`create`.
        """
        path = Path(path)
        _observation_mode(header)
        if (path / HEADER_FILE).exists():
            store = cls.open(path)
            _refuse_other(path, store.header, header)
            return store
        if path.exists() and (not path.is_dir() or _visible(path)):
            raise InputError(f"{path} holds something that is no episode store.")
        write_json(path / HEADER_FILE, header)
        store = cls(path, header, Tally(), closed=False)
        store._write_manifest("open")
        return store

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open a store, for reading and for adding to it.

        Raises:
            InputError: If there is none, its manifest is missing, altered or corrupt, or the
                recording was interrupted and one of the files left is corrupt.
        """
        path = Path(path)
        if not (path / HEADER_FILE).exists():
            raise InputError(f"{path} is no episode store: it has no {HEADER_FILE}.")
        header = read_json(path / HEADER_FILE)
        check_header(header, str(path / HEADER_FILE))
        manifest = read_json(path / MANIFEST_FILE)
        check_manifest(manifest, header, path / MANIFEST_FILE)
        tally = Tally.from_manifest(manifest)
        closed = manifest["state"] == "closed"
        store = cls(path, header, tally, closed=closed)
        if not closed:
            store._take_up()
        return store

    @property
    def manifest(self) -> dict[str, Any]:
        """What the store holds; see docs/data.md for its fields."""
        if self._manifest is None:
            self._manifest = self._tally.manifest(self.header)
            saved = self.path / ACTION_DEPENDENT_FILE
            if saved.exists():
                found = read_json(saved)
                check_action_dependent(found, saved)
                self._manifest["goals"]["action_dependent"] = found
        return self._manifest

    @property
    def manifest_sha256(self) -> str:
        """Hash of what the store holds, independent of its path and of when it was recorded."""
        return str(self.manifest["manifest_sha256"])

    @property
    def game_id(self) -> str:
        """Id of the game recorded."""
        return str(self.header["game"])

    @property
    def recipe(self) -> dict[str, Any]:
        """How the episodes were recorded."""
        return dict(self.header["recipe"])

    @property
    def observation_mode(self) -> ObservationMode:
        """Whether observations are stored, or replayed when they are read."""
        return _observation_mode(self.header)

    def __len__(self) -> int:
        """Return the number of records, one a seat and play."""
        return len(self._tally.rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.save()

    def keys(self) -> list[tuple[str, int]]:
        """Return (episode_id, seat) of every record, sorted by world."""
        return [(row["episode_id"], row["key"]["seat"]) for row in self._tally.sorted_rows()]

    def rows(self) -> list[dict[str, Any]]:
        """Return the manifest's row of every record, sorted by world."""
        return self._tally.sorted_rows()

    def __contains__(self, key: object) -> bool:
        return key in self._tally.rows

    def add(self, episode: Episode) -> bool:
        """Write an episode; it is on the disk when this returns.

        Returns:
            Whether it is new: writing the same again is allowed and changes nothing.

        Raises:
            InputError: If the store holds another episode of that key, the episode is of another
                game, engine or catalogue, its parts do not fit together, or the folder cannot be
                written to.
        """
        return self.add_encoded(encode_episode(episode, self.observation_mode))

    def add_encoded(self, encoded: EncodedEpisode) -> bool:
        """Write an episode that was encoded elsewhere, such as by a worker; see :meth:`add`."""
        row = encoded.row
        check_row(row, str(row["file"]), self.header)
        known = self._tally.rows.get((row["episode_id"], row["key"]["seat"]))
        if known is not None:
            if known["content_sha256"] != row["content_sha256"]:
                raise InputError(
                    f"{self.path} holds another episode {row['episode_id']} of the same key."
                )
            return False
        if self._closed:
            self._write_manifest("open")
        write_atomically(self.path / row["file"], encoded.payload)
        self._tally.add(encoded)
        self._manifest = None
        return True

    def save(self) -> None:
        """Write the manifest and mark the recording as closed; does nothing where it is."""
        if not self._closed:
            self._write_manifest("closed")

    def read(self, episode_id: str, seat: int = 0, *, observations: bool = True) -> Episode:
        """Read one seat's record of one play.

        Args:
            episode_id: Its play.
            seat: Its seat.
            observations: Whether its observations are wanted; in a store that replays them they
                are made by playing the recorded actions in the game.

        Raises:
            InputError: If there is no such record, its file is missing or altered, or the game
                does not show the recorded observations any more.
        """
        row = self._tally.rows.get((episode_id, seat))
        if row is None:
            raise InputError(f"{self.path} has no episode {episode_id!r} with seat {seat}.")
        payload = read_checked(self.path, row)
        episode = decode_episode(payload, row["file"], observations=observations)
        if observations and episode.observations is None:
            from lanista.data.replay import replay_episode

            only = self.recipe.get("only")
            return replay_episode(episode, row["observations_sha256"], self.catalogue.scheme, only)
        return episode

    def episodes(self, split: str | None = None, *, observations: bool = True) -> Iterator[Episode]:
        """Read all records, or those on one side of the split, sorted by world.

        Raises:
            InputError: At the first file that is missing or altered; none is left out silently.
        """
        side = None if split is None else check_split(split)
        for episode_id, seat in self.keys():
            if side is None or split_of(episode_id) == side:
                yield self.read(episode_id, seat, observations=observations)

    def goals(self, rule: str = "recorded_minus_always") -> tuple[int, ...]:
        """Return the ids of the functions that are goals, in rising order.

        Args:
            rule: ``recorded_minus_always`` or ``action_dependent``.

        Raises:
            InputError: If the rule is unknown or its goals have not been computed.
        """
        if rule == "recorded_minus_always":
            return self._tally.goals()
        if rule != "action_dependent":
            raise InputError(
                f"There is no goal rule {rule!r}; there are recorded_minus_always and "
                "action_dependent."
            )
        found = self.manifest["goals"].get(rule)
        if found is None:
            raise InputError(
                f"{self.path} has no action_dependent goals yet: run lanista data goals."
            )
        return tuple(found["ids"])

    def save_action_dependent(self, value: Mapping[str, Any]) -> None:
        """Keep goals that were found by counterfactual play, beside and in the manifest."""
        named = {**value, "sha256": hash_json(value)}
        write_json(self.path / ACTION_DEPENDENT_FILE, named)
        self._manifest = None
        self._write_manifest("closed" if self._closed else "open")

    def check_files(self) -> None:
        """Refuse a store some of whose files are gone or cut short; quick, it reads none.

        Raises:
            InputError: One line a file.
        """
        problems = []
        for row in self.rows():
            path = self.path / str(row["file"])
            if not path.is_file() or path.stat().st_size != row["bytes"]:
                state = "truncated" if path.is_file() else "missing"
                problems.append(
                    f"{path} is {state}: lanista data verify {self.path} --quarantine sets it "
                    "aside, then the recording can go on."
                )
        if problems:
            raise InputError(*problems)

    def _take_up(self) -> None:
        """Take up the files that an interrupted recording finished but did not list."""
        known = {row["file"] for row in self._tally.rows.values()}
        for path in sorted((self.path / EPISODES).glob("*.parquet")):
            file = f"{EPISODES}/{path.name}"
            if file in known or path.name.startswith(TEMPORARY):
                continue
            encoded = read_row(path.read_bytes(), file)
            check_row(encoded.row, file, self.header)
            self._tally.add(encoded)

    def _write_manifest(self, state: str) -> None:
        self._manifest = None
        write_json(self.path / MANIFEST_FILE, self.manifest | {"state": state})
        self._closed = state == "closed"


def read_checked(folder: Path, row: Mapping[str, Any]) -> bytes:
    """Read an episode's file and compare it with the hash that the manifest has of it.

    Raises:
        InputError: If it is missing, unreadable or altered; names the file.
    """
    path = folder / str(row["file"])
    try:
        payload = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path} is missing; see lanista data verify {folder}.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    if hashlib.sha256(payload).hexdigest() != row["sha256"]:
        raise InputError(f"{path} is altered or truncated; see lanista data verify {folder}.")
    return payload


def check_row(row: Mapping[str, Any], file: str, header: Mapping[str, Any]) -> None:
    """Refuse an episode of another game, engine or catalogue than the store's.

    Raises:
        InputError: If it is.
    """
    key = row["key"]
    for name, found, wanted in (
        ("game", key["game"], header["game"]),
        ("engine version", key["engine_version"], header["engine"]["version"]),
        ("engine source", key["engine_sha256"], header["engine"]["sha256"]),
        ("catalogue", key["catalogue_sha256"], header["catalogue_sha256"]),
    ):
        if found != wanted:
            raise InputError(f"{file} is of {name} {found!r}, the store of {wanted!r}.")


def check_action_dependent(value: Any, path: Path) -> tuple[int, ...]:
    """Return the goals in a file of goals found by counterfactual play.

    Raises:
        InputError: If it is altered or lacks something.
    """
    try:
        altered = hash_json(value) != value["sha256"]
        goals = tuple(int(goal) for goal in value["ids"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is corrupt: it lacks {error}.") from error
    if altered:
        raise InputError(f"{path} is altered: it does not match its own hash.")
    return goals


def check_manifest(manifest: Any, header: Mapping[str, Any], path: Path) -> None:
    """Refuse a manifest that is not what was once written, and a header that it is not of.

    Raises:
        InputError: If the manifest is altered or lacks something, or else the header is altered:
            the manifest, which has a hash, repeats it.
    """
    try:
        altered = bool(hash_manifest(manifest) != manifest["manifest_sha256"])
        altered |= manifest["state"] not in ("open", "closed")
        # No hash covers the files' names, which must not lead out of the store.
        altered |= any(row["file"] != _named_file(row) for row in manifest["episodes"])
    except KeyError as error:
        raise InputError(f"{path} is corrupt: it lacks {error}.") from error
    except (TypeError, AttributeError) as error:
        raise InputError(f"{path} is corrupt: it is no manifest.") from error
    if altered:
        raise InputError(f"{path} is altered: it does not match its own hash.")
    if any(manifest.get(name) != value for name, value in header.items()):
        header_file = path.with_name(HEADER_FILE)
        raise InputError(f"{header_file} is altered: it is not what {path.name} repeats of it.")


def _named_file(row: Mapping[str, Any]) -> str:
    key = EpisodeKey(**row["key"])
    if key.episode_id != row["episode_id"] or type(key.seat) is not int:
        raise TypeError("the row of an episode has another name than its key")
    return file_name(key)


def _refuse_other(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse to go on with a store that was made with other arguments; says with which."""
    for name, value in wanted.items():
        if found[name] == value:
            continue
        what = name
        if name == "recipe":
            keys = sorted(found[name].keys() | value.keys())
            other = [key for key in keys if found[name].get(key) != value.get(key)]
            what = f"recipe ({', '.join(other)})"
        raise InputError(f"{path} holds a recording with another {what}; choose another folder.")


def _observation_mode(header: Mapping[str, Any]) -> ObservationMode:
    mode = header["recipe"].get("observations", "stored")
    if mode not in ("stored", "replayed"):
        raise InputError(f"observations is {mode!r}; it is stored or replayed.")
    return "replayed" if mode == "replayed" else "stored"


def _visible(path: Path) -> bool:
    try:
        return any(not item.name.startswith(".") for item in path.iterdir())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
