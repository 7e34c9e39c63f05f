"""``lanista games``."""

from collections.abc import Mapping
from typing import Any

from lanista.platform.cli.options import JsonOption, SeedOption
from lanista.platform.cli.output import emit, make_table


def games(as_json: JsonOption = False, seed: SeedOption = 0) -> None:
    """List the games that can be played here.

    Example: lanista games --json
    """
    del seed
    from lanista.envs.errors import InputError
    from lanista.envs.game import game_ids, load_game

    rows: list[dict[str, Any]] = []
    for game_id in game_ids():
        row: dict[str, Any] = {
            "id": game_id,
            "title": "",
            "seats": [],
            "actions": [],
            "action_shape": [],
            "observations": "",
            "functions": None,
            "installed": False,
        }
        try:
            game = load_game(game_id)
        except InputError:
            rows.append(row)
            continue
        shape = "×".join(map(str, game.observation_shape))
        row |= {
            "title": game.title,
            "seats": list(game.seats),
            "actions": list(game.actions),
            "action_shape": list(game.action_shape),
            "observations": f"{game.observation_dtype} {shape}",
            "functions": len(game.catalogue("class")),
            "installed": True,
        }
        rows.append(row)
    table = make_table(
        "Games",
        {
            "id": "left",
            "what": "left",
            "seats": "right",
            "actions": "right",
            "observations": "left",
            "functions": "right",
            "installed": "left",
        },
        [
            [
                row["id"],
                row["title"],
                str(len(row["seats"])),
                _actions(row),
                row["observations"],
                str(row["functions"] or "–"),
                "yes" if row["installed"] else "no",
            ]
            for row in rows
        ],
    )
    emit({"games": rows}, as_json=as_json, shown=table)


def _actions(row: Mapping[str, Any]) -> str:
    if not row["action_shape"]:
        return str(len(row["actions"]))
    return f"{'×'.join(map(str, row['action_shape']))} numbers"
