"""The demo: the main job on a small corpus, as the sweep that ``demo.yaml`` describes."""

from collections.abc import Sequence
from importlib import resources

from lanista.platform.config import parse_document
from lanista.platform.experiment import SweepFile, make_sweep


def demo_sweep(*, quick: bool = False, overrides: Sequence[str] = ()) -> SweepFile:
    """Return the demo's sweep.

    Args:
        quick: Whether to take its profile ``quick``: the same job, smaller still.
        overrides: As of any experiment file: ``train.steps=500``.
    """
    text = resources.files("lanista.platform").joinpath("demo.yaml").read_text(encoding="utf-8")
    profile = "quick" if quick else None
    return make_sweep(parse_document(text, "demo.yaml", overrides=overrides, profile=profile))
