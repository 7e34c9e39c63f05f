import copy
from pathlib import Path

import pytest

from lanista.envs.errors import InputError
from lanista.envs.game import game_ids, load_game


def test_an_unknown_game_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"No game is named 'chess'; there are .*crafter"):
        load_game("chess")


def test_a_game_of_ones_own_is_found_by_module_and_attribute() -> None:
    assert "crafter" in game_ids()
    with pytest.raises(InputError, match="module json has no nothing"):
        load_game("json:nothing")
    with pytest.raises(InputError, match="cannot be imported"):
        load_game("no_such_module_here:GAME")
    with pytest.raises(InputError, match="is a function, not a lanista Game"):
        load_game("json:dumps")


def test_input_errors_keep_all_their_problems_across_processes() -> None:
    error = copy.copy(InputError("first", "second"))
    assert error.problems == ("first", "second")
    assert error.exit_code == 2


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = = 1", "SyntaxError: invalid syntax"),
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
        ("{}['key']", "KeyError: 'key'"),
        ("GAME = 3", "is a int, not a lanista Game"),
        ("", "has no GAME"),
    ],
)
def test_a_module_that_is_no_game_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    name = f"no_game_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match="Game") as caught:
        load_game(f"{name}:GAME")
    assert said in str(caught.value)


@pytest.mark.parametrize("game_id", [":GAME", "module:", ":"])
def test_half_a_name_is_refused(game_id: str) -> None:
    with pytest.raises(InputError, match="not of the form module:attribute"):
        load_game(game_id)
