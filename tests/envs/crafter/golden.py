"""Plays fixed worlds and prints a hash of all that was seen; run as a script in other processes.

``python tests/envs/crafter/golden.py`` prints the JSON that ``golden.json`` holds.
"""

import hashlib
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "envs"))

import numpy as np

from lanista.envs.crafter.game import CRAFTER

WORLDS = (0, 7, 10_000)
STEPS = 320


def play(world: int) -> dict[str, str]:
    """Act at random by day, then sleep through the night."""
    env = CRAFTER.make("class", None)
    names = [function.name for function in env.catalogue.functions]
    observations, traces, numbers = hashlib.sha256(), hashlib.sha256(), hashlib.sha256()
    observation, info = env.reset(options={"world": world})
    chance = np.random.RandomState(world)  # its stream is frozen, whatever the version of NumPy
    for step in range(STEPS):
        observations.update(observation.tobytes())
        traces.update("\n".join(names[i] for i in info["call_trace"].ids).encode())
        action = 6 if step >= 140 and chance.randint(4) else chance.randint(17)
        observation, reward, terminated, truncated, info = env.step(action)
        numbers.update(json.dumps([reward, terminated, truncated, info["step_info"]]).encode())
        if terminated or truncated:
            observation, info = env.reset(options={"world": world})
    return {
        "observations": observations.hexdigest(),
        "traces": traces.hexdigest(),
        "numbers": numbers.hexdigest(),
    }


if __name__ == "__main__":
    # Move the addresses of later objects about, which stock Crafter's sets would show.
    padding = [object() for _ in range(random.SystemRandom().randrange(10_000))]
    json.dump({str(world): play(world) for world in WORLDS}, sys.stdout, indent=2)
    sys.stdout.write("\n")
