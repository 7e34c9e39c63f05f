"""Learners load neither Ray nor Gymnasium, and every public name is there."""

import subprocess
import sys
from pathlib import Path

import lanista.agents


def test_learning_and_playing_load_neither_ray_nor_gymnasium() -> None:
    modules = ("training", "player", "checkpoint", "config", "policies")
    code = (
        "import sys, "
        + ", ".join(f"lanista.agents.{name}" for name in modules)
        + "; print([n for n in ('ray', 'gymnasium', 'pandas', 'mlflow') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert [name for name in lanista.agents.__all__ if not hasattr(lanista.agents, name)] == []


def test_nothing_is_unpickled() -> None:
    folder = Path(lanista.agents.__file__).parent
    for file in [*folder.glob("*.py"), *folder.glob("networks/*.py")]:
        text = file.read_text("utf-8")
        assert "torch.load" not in text
        assert "torch.save" not in text
        assert "pickle" not in text.replace("unpickle", "")
