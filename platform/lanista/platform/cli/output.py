"""What a command prints: tables and progress for people, one JSON object for machines."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

_stderr = Console(stderr=True, highlight=False)
_STDOUT, _STDERR = 1, 2
_results: list[TextIO] = []
"""Where the JSON object goes while :func:`results_only` keeps standard output free."""


class Advance(Protocol):
    """Moves a progress bar on."""

    def __call__(self, steps: float = 1, *, note: str = "") -> None:
        """Advance by ``steps`` and show ``note`` beside the bar."""
        ...


def print_error(line: str) -> None:
    """Print one line on standard error, as what it is: an error."""
    print(f"error: {' '.join(line.split())}", file=sys.stderr)  # noqa: T201


def say(line: str) -> None:
    """Tell a person something on standard error."""
    _stderr.print(line, soft_wrap=True, markup=False)


def emit(value: Mapping[str, Any], *, as_json: bool, shown: RenderableType | None = None) -> None:
    """Print a command's result: the JSON object, or what people see.

    NaN and infinity have no place in JSON: they come out as ``null``.
    """
    if as_json:
        out = _results[-1] if _results else sys.stdout
        out.write(json.dumps(_finite(value), default=_plain, allow_nan=False) + "\n")
        out.flush()
    elif shown is not None:
        Console(highlight=False).print(shown)


@contextmanager
def results_only() -> Iterator[None]:
    """Keep standard output for what :func:`emit` prints while the block runs.

    What games, libraries and the processes that they start print there goes to standard error.
    """
    stdout = sys.stdout
    stdout.flush()
    try:
        real = stdout.fileno() == _STDOUT
    except (OSError, ValueError):
        real = False
    kept = os.dup(_STDOUT) if real else None
    _results.append(stdout if kept is None else os.fdopen(os.dup(kept), "w", encoding="utf-8"))
    if kept is not None:
        os.dup2(_STDERR, _STDOUT)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = stdout
        out = _results.pop()
        if kept is not None:
            os.dup2(kept, _STDOUT)
            os.close(kept)
            out.close()


def make_table(title: str, columns: Mapping[str, str], rows: list[list[str]]) -> Table:
    """Make a table whose columns are given as name to justification (``left`` or ``right``)."""
    table = Table(title=title, title_justify="left")
    for name, justify in columns.items():
        table.add_column(name, justify="right" if justify == "right" else "left")
    for row in rows:
        table.add_row(*row)
    return table


@contextmanager
def progress(total: float | None, label: str) -> Iterator[Advance]:
    """Show a progress bar on standard error; silent where that is no terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=_stderr, disable=not _stderr.is_terminal) as bar:
        task = bar.add_task(label, total=total, note="")

        def advance(steps: float = 1, *, note: str = "") -> None:
            bar.update(task, advance=steps, note=note)

        yield advance


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return _finite(value.tolist())
    return str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
