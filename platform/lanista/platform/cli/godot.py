"""``lanista godot``: the engine, and traced copies of projects."""

import typer

from lanista.platform.cli import godot_instrument
from lanista.platform.cli.options import JsonOption, SeedOption
from lanista.platform.cli.output import emit, progress

app = typer.Typer(
    name="godot", help="The Godot engine, and traced copies of projects.", no_args_is_help=True
)

app.command("instrument")(godot_instrument.instrument)


@app.command("install")
def install(as_json: JsonOption = False, seed: SeedOption = 0) -> None:
    """Find the Godot engine ($GODOT, PATH), or put one under the user's cache.

    Example: lanista godot install
    """
    del seed
    from lanista.envs.godot.installer import install_engine

    done = 0.0
    with progress(100, "Godot engine") as advance:

        def tell(share: float, note: str) -> None:
            nonlocal done
            advance(round(100 * share) - done, note=note)
            done = round(100 * share)

        engine = install_engine(tell)
    where = " ".join(engine.command)
    emit(
        {"engine": where, "version": engine.version},
        as_json=as_json,
        shown=f"Godot {engine.version} at {where}",
    )
