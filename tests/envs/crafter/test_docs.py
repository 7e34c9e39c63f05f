"""The examples of docs/crafter.md run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


def test_the_examples_run() -> None:
    text = (REPOSITORY / "docs" / "crafter.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) == 2
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(examples)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "'health'" in first
    assert re.fullmatch(r"(-1|0)\.0 (True|False) \S+ CallTrace\(.*\)", second)
