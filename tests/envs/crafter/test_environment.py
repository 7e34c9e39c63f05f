"""Crafter as a Gymnasium environment."""

import warnings

import gymnasium
from gymnasium.utils.env_checker import check_env

import lanista.envs.crafter

ID = "lanista/Crafter-v0"


def test_gymnasium_finds_nothing_to_object_to() -> None:
    env = gymnasium.make(ID, render_mode="rgb_array").unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=False)
    assert lanista.envs.crafter.Crafter is type(env)
