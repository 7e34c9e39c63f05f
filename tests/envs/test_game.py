import copy

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
