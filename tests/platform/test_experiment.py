"""Experiment files: the ones that come along are right, and wrong ones say what is wrong."""

from pathlib import Path

import pytest
import yaml

from lanista.agents.config import AgentConfig, TrainConfig
from lanista.envs.errors import InputError
from lanista.platform.config import parse_document
from lanista.platform.demo import demo_sweep
from lanista.platform.experiment import (
    SweepFile,
    identity,
    make_sweep,
    read_sweep,
    read_training,
    slug,
)

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
SWEEPS = [
    (path, profile)
    for path in sorted(EXPERIMENTS.glob("*.yaml"))
    if "agents" in (value := yaml.safe_load(path.read_text(encoding="utf-8")))
    for profile in [None, *value.get("profiles", {})]
]
SMALL = """
name: small
data: {path: datasets/there}
agents: {One: {algorithm: gcbc}, Two: {algorithm: gcdt}}
"""


TRAININGS = [
    (path, profile)
    for path in sorted(EXPERIMENTS.glob("*.yaml"))
    if "agent" in (value := yaml.safe_load(path.read_text(encoding="utf-8")))
    for profile in [None, *value.get("profiles", {})]
]


def small(*overrides: str) -> SweepFile:
    return make_sweep(parse_document(SMALL, "small.yaml", overrides=overrides))


@pytest.mark.parametrize(("path", "profile"), SWEEPS, ids=lambda item: getattr(item, "stem", item))
def test_sweeps_that_come_along_are_right(path: Path, profile: str | None) -> None:
    assert read_sweep(path, profile=profile).trials()


@pytest.mark.parametrize(
    ("path", "profile"), TRAININGS, ids=lambda item: getattr(item, "stem", item)
)
def test_trainings_that_come_along_are_right(path: Path, profile: str | None) -> None:
    assert read_training(path, profile=profile).agent.algorithm in {"gcbc", "gcdt"}


def test_the_training_of_the_paper_has_its_sizes() -> None:
    made = read_training(EXPERIMENTS / "crafter_train.yaml")
    assert made.agent == AgentConfig(algorithm="gcdt", call_stack="mhsa", context=30)
    assert made.train == TrainConfig(steps=10_000, batch_size=128, learning_rate=3e-4)


def test_table_1_has_its_agents_seeds_and_sizes() -> None:
    sweep = read_sweep(EXPERIMENTS / "crafter_table1.yaml")
    trials = sweep.trials()
    assert len(trials) == 4 * 5
    assert {(trial.agent.algorithm, trial.agent.call_stack) for trial in trials} == {
        ("gcbc", None),
        ("gcbc", "mhsa"),
        ("gcdt", None),
        ("gcdt", "mhsa"),
    }
    assert {trial.train.seed for trial in trials} == {0, 1, 2, 3, 4}
    assert (sweep.train.steps, sweep.train.batch_size, sweep.evaluate.episodes) == (10000, 128, 10)
    assert sweep.evaluate.goals == "all"
    assert sweep.evaluate.world_list == tuple(range(10000, 10010))


def test_the_demo_is_the_experiment_file() -> None:
    assert demo_sweep() == read_sweep(EXPERIMENTS / "demo.yaml")
    assert demo_sweep(quick=True) == read_sweep(EXPERIMENTS / "demo.yaml", profile="quick")
    assert demo_sweep(quick=True).name != demo_sweep().name


def test_data_may_be_a_folder_alone() -> None:
    assert small("data=datasets/there") == small()


def test_a_grid_multiplies_what_it_changes() -> None:
    trials = small("grid.context=[10, 20]", "grid.dimension=[64, 128]", "seeds=[0, 1]").trials()
    ones = [trial for trial in trials if trial.agent.algorithm == "gcbc"]
    twos = [trial for trial in trials if trial.agent.algorithm == "gcdt"]
    assert (len(ones), len(twos)) == (2 * 2, 2 * 2 * 2)
    assert {(t.agent.context, t.agent.dimension) for t in twos} == {
        (10, 64),
        (10, 128),
        (20, 64),
        (20, 128),
    }
    assert len({trial.name for trial in trials}) == len(trials)
    assert {(t.label, t.variation) for t in ones} == {
        ("One dimension=64", "dimension=64"),
        ("One dimension=128", "dimension=128"),
    }
    assert {t.variation for t in small().trials()} == {""}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("agents={}", "agents is empty"),
        ("seeds=[]", "seeds must be distinct"),
        ("seeds=[1, 1]", "seeds must be distinct"),
        ("train.seed=3", "train.seed is set by seeds"),
        ("train.steps=0", "train.steps must be at least 1"),
        ("grid.colour=[1]", "grid.colour: agents have no such field"),
        ("grid.context=[]", "grid.context: no value is given"),
        ("grid.context=[0]", "agent.context must be at least 1"),
        ("agents.One.call_stack=lstm", "call_stack: input should be 'emb', 'linear' or 'mhsa'"),
        ("agents.one={algorithm: gcbc}", "two trials would be named one-seed-0"),
        ("evaluate.episodes=0", "episodes is 0"),
        ("evaluate.worlds=9-7", "run backwards"),
        ("evaluate.worlds=3000000000-", "too many or too high"),
        ("evaluate.worlds=5-6", "worlds are 2 for 10 episodes"),
        ("evaluate.goals={subset: 0}", "subset is 0"),
        ("evaluate.step_cap=0", "step_cap is 0"),
        ("scheduling.workers=0", "workers is 0"),
        ("data.collect={game: crafter, episodes: 0, testers: [{name: x}]}", "episodes is 0"),
        ("data.colect={}", "did you mean collect?"),
        ("name=a/b", "must be letters"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(override: str, expected: str) -> None:
    with pytest.raises(InputError) as caught:
        small(override)
    [line] = caught.value.problems
    assert expected in line
    assert line.startswith("small.yaml")


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(InputError) as caught:
        small("data.goals=x", "trian={}", "seeds=[x]")
    assert len(caught.value.problems) == 3
    with pytest.raises(InputError) as caught:
        small("evaluate.episodes=0", "train.steps=0", "scheduling.workers=0")
    assert len(caught.value.problems) == 3


def test_the_identity_covers_results_and_nothing_else() -> None:
    base = identity(small())
    assert base == identity(small("scheduling.workers=7", "name=other"))
    for override in ("train.steps=5", "seeds=[1]", "evaluate.seed=1", "agents.One.dimension=64"):
        assert identity(small(override)) != base


@pytest.mark.parametrize(
    ("text", "expected"),
    [("GC-DT + CA2 (MHSA)", "gc-dt-ca2-mhsa"), ("a=0.5", "a-0.5"), ("…", "agent")],
)
def test_slugs(text: str, expected: str) -> None:
    assert slug(text) == expected
