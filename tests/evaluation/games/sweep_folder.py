"""Makes the folder of a small finished sweep in the vault game."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from vault_game import NAMES, SECRET, Robber

from lanista.data.executor import SerialExecutor
from lanista.envs.tracing.catalogue import Catalogue
from lanista.evaluation.evaluation import Evaluation, GoalProtocol
from lanista.evaluation.protocol import default_worlds, evaluate

GOALS = ("grab", "wait", "open", "creak", "close", "never")


class Learner(Robber):
    """Opens the vault for a share of the plays, and slams it now and then."""

    def __init__(self, skill: float) -> None:
        self.skill = skill

    def act(self, observation: Any, memory: Any, rng: Any) -> Any:
        actions, kept = [], []
        for lane, goal in enumerate(observation.goal):
            step, able = memory[lane] or (0, rng[lane].random() < self.skill)
            if able and NAMES[int(goal)] != "wait":
                last = {"grab": 4, "close": 1 + lane % 3}.get(NAMES[int(goal)], 4)
                action = (*SECRET, last)[min(step, 3)]
                if NAMES[int(goal)] == "close" and lane % 4 == 0 and step == 3:
                    action = 0
            else:
                action = int(rng[lane].integers(0 if able else 1, 4))
            actions.append(action)
            kept.append((step + 1, able))
        return np.array(actions), kept


def judge(skill: float, episodes: int = 6) -> Evaluation:
    protocol = GoalProtocol(
        "vault_game:GAME", GOALS, episodes, default_worlds(episodes), step_cap=30, seed=1
    )

    def make_policy(catalogue: Catalogue) -> Learner:
        return Learner(skill)

    return evaluate(protocol, make_policy, f"learner-{skill}", SerialExecutor())


def make_sweep(folder: Path, *, seeds: int = 2) -> Path:
    """Write a sweep of GC-BC and GC-DT, Simple and CA2, and one trial that failed."""
    trials = [
        (algorithm, variant, encoder, seed, skill + 0.05 * seed)
        for algorithm, variant, encoder, skill in (
            ("GC-BC", "simple", "", 0.3),
            ("GC-BC", "ca2", "mhsa", 0.6),
            ("GC-DT", "simple", "", 0.5),
            ("GC-DT", "ca2", "mhsa", 0.9),
        )
        for seed in range(seeds)
    ]
    for algorithm, variant, encoder, seed, skill in trials:
        label = f"{algorithm}-{variant}-{seed}".lower()
        place = folder / "trials" / label
        place.mkdir(parents=True)
        write(
            place / "trial.json",
            {
                "label": label,
                "algorithm": algorithm,
                "variant": variant,
                "encoder": encoder,
                "seed": seed,
                "status": "finished",
                "facts": {"parameters": "12 345"},
            },
        )
        write(place / "evaluation.json", judge(skill).to_json())
        rng = np.random.default_rng(seed)
        curve = [[u, 2.8 * np.exp(-u * skill / 400) + rng.random() / 9] for u in range(0, 500, 20)]
        validation = [[u, 2.9 * np.exp(-u * skill / 500) + 0.2] for u in range(0, 500, 50)]
        write(place / "curves.json", {"train/loss": curve, "validation/loss": validation})
    failed = folder / "trials" / "broken"
    failed.mkdir()
    write(
        failed / "trial.json",
        {"label": "gc-dt-ca2-9", "algorithm": "GC-DT", "variant": "ca2", "seed": 9}
        | {"status": "failed", "error": "the loss is NaN at update 12"},
    )
    write(
        folder / "sweep.json",
        {
            "name": folder.name,
            "title": "Vault: code-aware against plain agents",
            "facts": {"git": "0123abc, clean", "config": "sha256 77aa…"},
            "corpus": {"episodes": "40", "steps": "12 000", "manifest": "sha256 ab12…"},
            "subset": "6 of 94 goals, 6 of 10 episodes, 200 of 10 000 updates.",
            "commands": ["lanista collect vault --episodes 40", "lanista sweep vault.yaml"],
        },
    )
    return folder


def write(file: Path, value: Any) -> None:
    file.write_text(json.dumps(value))
