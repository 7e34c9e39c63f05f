"""Where a result comes from: the code's git state, the versions, the resolved configuration."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from lanista.data.files import write_atomically

_PACKAGES = ("lanista", "torch", "ray", "mlflow", "numpy", "gymnasium", "crafter")


def git_state(folder: Path | None = None) -> dict[str, str]:
    """Return commit, branch, whether files differ from it, and a hash of how.

    Args:
        folder: A folder of the checkout; the one that this code lies in by default.

    Returns:
        ``commit``, ``branch``, ``dirty`` (``yes`` or ``no``) and ``diff_sha256`` (empty where
        nothing differs); all ``unknown`` outside a checkout.
    """
    place = folder or Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(place), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
            errors="replace",
        )
        return done.stdout.strip()

    try:
        commit, branch = git("rev-parse", "HEAD"), git("rev-parse", "--abbrev-ref", "HEAD")
        changed = git("status", "--porcelain", "--untracked-files=no")
        diff = git("diff", "HEAD") if changed else ""
    except (OSError, subprocess.SubprocessError):
        return dict.fromkeys(("commit", "branch", "dirty", "diff_sha256"), "unknown")
    return {
        "commit": commit,
        "branch": branch,
        "dirty": "yes" if changed else "no",
        "diff_sha256": hashlib.sha256(diff.encode()).hexdigest() if changed else "",
    }


def versions() -> dict[str, str]:
    """Return the version of Python and of the packages that results depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def sha256_of(value: Any) -> str:
    """Return the hash of a JSON value, independent of the order of its keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write a JSON file as a whole or not at all."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file as a whole or not at all.

    Raises:
        InputError: If the folder cannot be written to.
    """
    write_atomically(path, text.encode())
