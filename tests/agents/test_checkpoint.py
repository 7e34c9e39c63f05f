"""Checkpoints: what is written comes back, and what is broken is named."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from lanista.agents.checkpoint import (
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from lanista.agents.config import AgentConfig, TrainConfig
from lanista.agents.training import train
from lanista.envs.errors import InputError

AGENT = AgentConfig(call_stack="mhsa", dimension=16, vector_hidden=16)


@pytest.fixture
def trained(toys: SimpleNamespace, tmp_path: Path) -> Path:
    config = TrainConfig(steps=2, batch_size=8, checkpoint_every=1, device="cpu")
    return train(
        AGENT,
        config,
        toys.random_dataset(),
        tmp_path / "run",
        data_manifest_sha256="abc",
        engine={"name": "toy", "version": "1"},
    ).checkpoint


def test_what_is_written_comes_back(toys: SimpleNamespace, trained: Path, tmp_path: Path) -> None:
    first = load_checkpoint(trained)
    assert first.agent == AGENT
    assert first.data["manifest_sha256"] == "abc"
    assert first.engine == {"name": "toy", "version": "1"}
    assert first.catalogue == toys.catalogue(12)
    assert first.goals == tuple(first.catalogue.name(place) for place in (1, 3, 5, 7))
    assert first.update == 2
    copy = save_checkpoint(tmp_path / "copy", first)
    assert toys.checkpoint_bytes(copy) == toys.checkpoint_bytes(trained)
    again = save_checkpoint(tmp_path / "copy", first)  # written over in one step
    assert toys.checkpoint_bytes(again) == toys.checkpoint_bytes(trained)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_training_folder_stands_for_its_latest_checkpoint(trained: Path) -> None:
    assert latest_checkpoint(trained.parent) == trained
    assert load_checkpoint(trained.parent).update == 2
    assert not load_checkpoint(trained, optimiser=False).optimiser


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)


def edit(**changes: object) -> Callable[[Path], None]:
    def apply(file: Path) -> None:
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return apply


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("checkpoint.json", Path.unlink, "is not a checkpoint"),
        ("checkpoint.json", lambda file: file.write_text("{"), "is corrupt"),
        ("checkpoint.json", lambda file: file.write_text("[]"), "has format None"),
        ("checkpoint.json", lambda file: file.write_bytes(b"\xff\xfe"), "is corrupt"),
        ("checkpoint.json", edit(format=99), "has format 99; this Lanista reads format 1"),
        ("checkpoint.json", edit(agent={"colour": "red"}), "has no field colour"),
        ("checkpoint.json", edit(agent={"heads": 3}), "must divide dimension"),
        ("checkpoint.json", edit(catalogue={}), "not a function catalogue"),
        ("checkpoint.json", edit(update=None), "is corrupt"),
        ("model.safetensors", Path.unlink, "is missing"),
        ("model.safetensors", flip_a_byte, "is corrupt: its hash"),
        ("optimizer.safetensors", flip_a_byte, "is corrupt: its hash"),
    ],
)
def test_a_broken_file_is_named(
    trained: Path, name: str, damage: Callable[[Path], object], says: str
) -> None:
    damage(trained / name)
    with pytest.raises(InputError, match=says) as refused:
        load_checkpoint(trained)
    assert str(trained / name) in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_tensors_of_another_agent_are_refused_on_resume(
    toys: SimpleNamespace, trained: Path
) -> None:
    checkpoint = load_checkpoint(trained)
    weights = dict(checkpoint.weights) | {"head.bias": torch.zeros(99)}
    parts = vars(checkpoint) | {"weights": weights}
    save_checkpoint(trained, type(checkpoint)(**parts))
    config = checkpoint.train
    with pytest.raises(InputError, match="does not fit its agent"):
        train(AGENT, config, toys.random_dataset(), trained.parent, data_manifest_sha256="abc")


def test_a_folder_that_cannot_be_written_is_named(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        save_checkpoint(tmp_path / "file" / "checkpoint", load_checkpoint(trained))
