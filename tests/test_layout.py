"""The folders of the repository never shadow Python's own modules, and imports stay light."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
ROOMS = ("envs", "data", "agents", "league", "evaluation", "balance", "platform")


def run_python(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("folder", [REPOSITORY, REPOSITORY / "platform", REPOSITORY / "tests"])
def test_import_platform_is_the_standard_library(folder: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, ''); import platform; "
        "print(platform.system(), platform.__file__)"
    )
    system, file = run_python(code, folder).split(" ", 1)
    assert system
    assert not Path(file).is_relative_to(REPOSITORY) or ".venv" in file


@pytest.mark.parametrize("room", ROOMS)
def test_no_file_turns_a_room_into_a_package(room: str) -> None:
    assert not list((REPOSITORY / room).glob("*.py"))
    assert not list((REPOSITORY / room / "lanista").glob("*.py"))
    assert (REPOSITORY / room / "lanista" / room / "py.typed").exists()


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("lanista.agents", ("gymnasium", "ray", "pandas", "mlflow")),
        ("lanista.envs", ("gymnasium", "ray", "pandas", "torch", "crafter")),
        ("lanista.data", ("gymnasium", "ray", "pandas", "torch", "mlflow")),
        ("lanista.evaluation", ("gymnasium", "ray", "pandas", "mlflow", "matplotlib")),
        ("lanista.platform.cli", ("gymnasium", "ray", "pandas", "torch", "mlflow", "matplotlib")),
    ],
)
def test_importing_stays_light(module: str, unwanted: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([name for name in {unwanted!r} if name in sys.modules])"
    assert run_python(code, REPOSITORY) == "[]"
