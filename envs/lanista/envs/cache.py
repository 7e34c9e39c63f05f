"""Where Lanista keeps what it can make again: engines and prepared copies of games."""

import os
from pathlib import Path

from lanista.envs.errors import InputError


def cache_folder() -> Path:
    """Return ``LANISTA_CACHE``, or ``lanista`` in the user's cache folder; it need not exist.

    Raises:
        InputError: If the user has no home and no cache folder is named.
    """
    given = os.environ.get("LANISTA_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    if shared and Path(shared).is_absolute():
        return Path(shared) / "lanista"
    try:
        return Path.home() / ".cache" / "lanista"
    except RuntimeError as error:
        raise InputError(
            "There is no home folder to keep a cache in; name a folder with LANISTA_CACHE."
        ) from error
