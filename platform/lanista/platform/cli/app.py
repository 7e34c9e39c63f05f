"""The program ``lanista``: its commands, and what becomes of errors."""

import os
import sys
from collections.abc import Sequence

# Ray reads these when it is first imported, so they stand before any command can import it.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

import typer
from typer.exceptions import TyperException

from lanista.envs.errors import InputError, LanistaError
from lanista.platform.cli import (
    collect,
    data,
    demo,
    doctor,
    evaluate,
    games,
    replay,
    report,
    sweep,
    trace,
    train,
)
from lanista.platform.cli.output import print_error

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
    try:
        code = app(args=None if arguments is None else list(arguments), standalone_mode=False)
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
        print_error(f"{message} See `lanista --help`." if message else "See `lanista --help`.")
        code = InputError.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print_error("Interrupted; what was finished is kept, and the same command goes on from it.")
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
