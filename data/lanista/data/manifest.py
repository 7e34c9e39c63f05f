"""The manifest: what a store holds, made anew from its files at any time."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from lanista.data.episode_file import EncodedEpisode
from lanista.data.goals import recorded_minus_always
from lanista.data.split import FRACTIONS, split_of
from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue

FORMAT = 1
"""Number of the format on disk; a store of another number is refused."""

_WHERE_STORED = ("file", "sha256", "bytes", "observations")
"""What a row says of its file; the same episodes make the same hash however they are stored."""


def make_header(
    game: str,
    engine: Mapping[str, str],
    catalogue: Catalogue,
    recipe: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what is fixed when a store is created: what is recorded, and how."""
    return {
        "format": FORMAT,
        "game": game,
        "engine": dict(engine),
        "catalogue": catalogue.to_json(),
        "catalogue_sha256": catalogue.sha256,
        "recipe": json.loads(json.dumps(recipe)),
    }


def check_header(header: Any, file: str) -> Catalogue:
    """Return the catalogue of a header that has the right form and format.

    Raises:
        InputError: If it has not.
    """
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{file} does not describe an episode store of format {FORMAT}.")
    wanted = {"game", "engine", "catalogue", "catalogue_sha256", "recipe"}
    if missing := sorted(wanted - header.keys()):
        raise InputError(f"{file} is corrupt: it lacks {', '.join(missing)}.")
    engine = header["engine"]
    known = isinstance(engine, dict) and engine.keys() >= {"version", "sha256"}
    if not known or not isinstance(header["recipe"], dict):
        raise InputError(f"{file} is corrupt: its engine or recipe is not of the right form.")
    catalogue = Catalogue.from_json(header["catalogue"])
    if catalogue.sha256 != header["catalogue_sha256"]:
        raise InputError(f"{file} is altered: its catalogue does not match its hash.")
    return catalogue


class Tally:
    """Counts over a store's episodes that grow with each one added."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}
        self._functions: dict[int, list[int]] = {}
        self._whole_steps = 0

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> "Tally":
        """Take up the counts where a manifest left them."""
        tally = cls()
        for row in manifest["episodes"]:
            tally.rows[row["episode_id"], row["key"]["seat"]] = row
            tally._whole_steps += row["whole_steps"]
        for item in manifest["functions"]:
            tally._functions[item["id"]] = [item["steps"], item["whole_steps"], item["calls"]]
        return tally

    def add(self, encoded: EncodedEpisode) -> None:
        """Count one more episode."""
        row = encoded.row
        self.rows[row["episode_id"], row["key"]["seat"]] = row
        self._whole_steps += row["whole_steps"]
        for function, *counts in encoded.calls:
            known = self._functions.setdefault(function, [0, 0, 0])
            for place, count in enumerate(counts):
                known[place] += count

    def sorted_rows(self) -> list[dict[str, Any]]:
        """Return the rows by world, then episode id, then seat, whatever order they came in."""
        return sorted(
            self.rows.values(),
            key=lambda row: (row["key"]["world"], row["episode_id"], row["key"]["seat"]),
        )

    def goals(self) -> tuple[int, ...]:
        """Return the goals by rule ``recorded_minus_always``."""
        calls = {function: (item[0], item[1]) for function, item in self._functions.items()}
        return recorded_minus_always(calls, self._whole_steps)

    def manifest(self, header: Mapping[str, Any]) -> dict[str, Any]:
        """Return the manifest of these episodes."""
        catalogue = Catalogue.from_json(header["catalogue"])
        rows = self.sorted_rows()
        goals = self.goals()
        value = {
            **header,
            "episodes": rows,
            "functions": [
                {
                    "id": function,
                    "name": catalogue.name(function),
                    "steps": counts[0],
                    "whole_steps": counts[1],
                    "calls": counts[2],
                }
                for function, counts in sorted(self._functions.items())
            ],
            "goals": {
                "recorded_minus_always": {
                    "rule": "functions called in some step, minus those called in every step that "
                    "ran to its end; calls made by reset are left out",
                    "steps": self._whole_steps,
                    "ids": list(goals),
                    "names": [catalogue.name(goal) for goal in goals],
                }
            },
            "totals": _totals(rows),
            "split": {"rule": "hash of the episode id", "fractions": dict(FRACTIONS)},
        }
        return value | {"manifest_sha256": hash_manifest(value)}


def hash_manifest(manifest: Mapping[str, Any]) -> str:
    """Return the hash of a manifest's content: no paths, times or ways of storing.

    Two stores have the same hash if they hold the same episodes of the same recipe, whichever
    workers recorded them, in whichever order, and however their files are compressed.
    """
    left_out = ("manifest_sha256", "state")
    value = {name: item for name, item in manifest.items() if name not in left_out}
    value["goals"] = {"recorded_minus_always": manifest["goals"]["recorded_minus_always"]}
    value["totals"] = {
        name: item for name, item in manifest["totals"].items() if name not in _WHERE_STORED
    }
    value["episodes"] = [
        {name: item for name, item in row.items() if name not in _WHERE_STORED}
        for row in manifest["episodes"]
    ]
    return hash_json(value)


def hash_json(value: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON object without its own ``sha256``."""
    content = {name: item for name, item in value.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _totals(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    rows = list(rows)
    sides = [split_of(row["episode_id"]) for row in rows]
    return {
        "episodes": len(rows),
        "steps": sum(row["steps"] for row in rows),
        "calls": sum(row["calls"] for row in rows),
        "longest_trace": max((row["longest_trace"] for row in rows), default=0),
        "faults": sum(row["fault"] is not None for row in rows),
        "bytes": sum(row["bytes"] for row in rows),
        "split": {side: sides.count(side) for side in FRACTIONS},
    }
