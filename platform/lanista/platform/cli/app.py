"""The program ``lanista``: its commands, and what becomes of errors."""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

# Ray reads these when it is first imported, so they stand before any command can import it.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

import typer
from typer.exceptions import TyperException

from lanista.envs.errors import InputError, LanistaError, RunError
from lanista.platform.cli import (
    collect,
    data,
    demo,
    doctor,
    evaluate,
    games,
    godot,
    replay,
    report,
    sweep,
    trace,
    train,
)
from lanista.platform.cli.output import print_error, results_only
from lanista.platform.signals import interruptible

_TRACEBACK = "LANISTA_TRACEBACK"
"""Environment variable; where it is set, the traceback of an unforeseen error is printed too."""

_TYPER_INTERRUPTED = 130
"""What Typer returns for a command that was interrupted, without a word."""

app = typer.Typer(
    name="lanista",
    help="Record games, train players, match them and judge with evidence.",
    epilog="Start with: lanista doctor, then lanista demo --quick",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("doctor")(doctor.doctor)
app.command("games")(games.games)
app.command("collect")(collect.collect)
app.add_typer(data.app, name="data")
app.add_typer(godot.app, name="godot")
app.command("trace")(trace.trace)
app.command("train")(train.train)
app.command("sweep")(sweep.sweep)
app.command("resume")(sweep.resume)
app.command("demo")(demo.demo)
app.command("evaluate")(evaluate.evaluate)
app.command("replay")(replay.replay)
app.command("report")(report.report)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 something failed, 2 refused before any work."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    _import_from_here()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets another one instead of an error.
            stream.reconfigure(errors="replace")
    try:
        with interruptible(), _reserved(given):
            code = app(args=given, standalone_mode=False)
        if code == _TYPER_INTERRUPTED:
            raise KeyboardInterrupt
    except InputError as error:
        for problem in error.problems:
            print_error(problem)
        code = error.exit_code
    except LanistaError as error:
        print_error(str(error))
        code = error.exit_code
    except TyperException as error:
        shown = getattr(error, "format_message", None)
        message = shown() if shown else str(error)
        print_error(" ".join(f"{message.rstrip('.')}. See `lanista --help`.".lstrip(". ").split()))
        code = InputError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print_error("Interrupted; what was finished is kept, and the same command goes on from it.")
        code = RunError.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        what = error.strerror or str(error) or type(error).__name__
        print_error(f"{error.filename}: {what}." if error.filename else f"{what}.")
        code = RunError.exit_code
    except Exception as error:  # noqa: BLE001 - people get one line, whatever went wrong
        print_error(_unexpected(error))
        code = RunError.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _import_from_here() -> None:
    """Let ``module:attribute`` name a game in the working directory, here and in workers.

    It comes last on this process's path, so that it shadows nothing; workers inherit it by the
    environment.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    inherited = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    if here not in inherited:
        os.environ["PYTHONPATH"] = os.pathsep.join([*inherited, here])


def _reserved(arguments: Sequence[str]) -> AbstractContextManager[None]:
    """Keep standard output for the JSON object where one is asked for."""
    wanted = "--json" in arguments and "--help" not in arguments
    return results_only() if wanted else nullcontext()


def _unexpected(error: Exception) -> str:
    """Say in one line what broke and where, and how to see all of it."""
    message = " ".join(str(error).split()) or "no more is known"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    if os.environ.get(_TRACEBACK):
        traceback.print_exception(error)
    return (
        f"Something unforeseen broke: {type(error).__name__}: {message}{where}; "
        f"{_TRACEBACK}=1 shows the traceback."
    )
