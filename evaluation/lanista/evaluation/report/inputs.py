"""What a report is made from: plain values, so that anybody can make one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lanista.evaluation.evaluation import Evaluation
from lanista.evaluation.findings import Finding
from lanista.evaluation.paths import RecordedPath

Variant = Literal["simple", "ca2"]


@dataclass(frozen=True)
class AgentReport:
    """One trained and judged agent.

    Attributes:
        label: Name of this trial, unique in the report.
        algorithm: Learner, as printed (``GC-BC``, ``GC-DT``).
        variant: ``simple`` (sees no calls) or ``ca2``.
        encoder: Call-stack encoder (``emb``, ``linear``, ``mhsa``), empty for ``simple``.
        seed: Training seed.
        evaluation: How it was judged.
        options: What else sets it apart in a sweep over a grid (``context=20``), empty if
            nothing does; only agents with equal options are seeds of one another or compared.
        curves: Per metric its points ``(update, value)``.
        facts: Further facts to print beside it: parameters, updates, checkpoint hash.
    """

    label: str
    algorithm: str
    variant: Variant
    encoder: str
    seed: int
    evaluation: Evaluation
    options: str = ""
    curves: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """Name shared by the seeds of one agent: ``GC-DT CA2 (MHSA)``."""
        shown = "Simple"
        if self.variant == "ca2":
            shown = f"CA2 ({self.encoder.upper()})" if self.encoder else "CA2"
        return " ".join(filter(None, (self.algorithm, shown, self.options)))


@dataclass(frozen=True)
class VideoClip:
    """A video to show.

    Attributes:
        caption: What is to be seen.
        file: The mp4; it is copied into the page, with the JPEG of the same name beside it, if
            there is one, as its still.
        command: What makes it again.
    """

    caption: str
    file: Path
    command: str = ""


@dataclass(frozen=True)
class ReportInput:
    """Everything that a report shows.

    Attributes:
        title: Headline.
        agents: Agents that were judged, in the order to be shown.
        facts: Facts of the run: git state, configuration, hashes.
        corpus: Facts of the data that was learned from.
        subset: What was left out against the full experiment, one sentence; empty if nothing.
        commands: How to reproduce it, one command each.
        failed: What did not finish: label and reason.
        findings: What broke the game, each once.
        paths: Shortest recorded path to each function reached.
        videos: Videos to show.
        recorded: Full names of the functions that the recorded plays reached; ``None`` where the
            recording is not at hand.
        folder: Where ``findings/`` and ``paths/`` are, ending in a slash; empty if here.
    """

    title: str
    agents: tuple[AgentReport, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    corpus: Mapping[str, str] = field(default_factory=dict)
    subset: str = ""
    commands: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    paths: tuple[RecordedPath, ...] = ()
    videos: tuple[VideoClip, ...] = ()
    recorded: frozenset[str] | None = None
    folder: str = ""
