"""The coverage map: each function at its place in the source, and who reached it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lanista.envs.tracing.catalogue import Function
from lanista.evaluation.report.inputs import AgentReport


@dataclass(frozen=True)
class FunctionCell:
    """One function of the map.

    Attributes:
        name: Full name.
        label: Name without its module.
        line: First line in its file.
        agents: How many agents reached it.
        plays: In how many plays it was called.
        share: Share of the agents, from 0 to 1.
        goal: Whether it is one of the goals.
        recorded: Whether the plays learned from called it; ``None`` where that is not known.
    """

    name: str
    label: str
    line: int
    agents: int
    plays: int
    share: float
    goal: bool
    recorded: bool | None = None


@dataclass(frozen=True)
class FileCoverage:
    """One source file of the map.

    Attributes:
        file: Path as the catalogue has it.
        cells: Its functions by line.
    """

    file: str
    cells: tuple[FunctionCell, ...]

    @property
    def reached(self) -> int:
        """How many of its functions were reached by any agent."""
        return sum(cell.agents > 0 for cell in self.cells)


def coverage_map(
    agents: Sequence[AgentReport], recorded: frozenset[str] | None = None
) -> list[FileCoverage]:
    """Count for each function of the agents' catalogues how many agents and plays called it.

    Args:
        agents: Who was judged.
        recorded: Functions that the plays learned from called, ``None`` where not known.
    """
    functions: dict[str, Function] = {}
    reached: dict[str, int] = {}
    plays: dict[str, int] = {}
    for agent in agents:
        found = agent.evaluation
        counts = found.called.sum(axis=(0, 1))
        for function, count in zip(found.catalogue.functions, counts, strict=True):
            functions[function.name] = function
            reached[function.name] = reached.get(function.name, 0) + int(count > 0)
            plays[function.name] = plays.get(function.name, 0) + int(count)
    goals = {name for agent in agents for name in agent.evaluation.goal_base}
    files: dict[str, list[FunctionCell]] = {}
    for name, function in functions.items():
        files.setdefault(function.file, []).append(
            FunctionCell(
                name=name,
                label=name.rpartition(":")[2],
                line=function.line,
                agents=reached[name],
                plays=plays[name],
                share=reached[name] / len(agents),
                goal=name in goals,
                recorded=None if recorded is None else name in recorded,
            )
        )
    return [
        FileCoverage(file, tuple(sorted(cells, key=lambda cell: (cell.line, cell.name))))
        for file, cells in sorted(files.items())
    ]
