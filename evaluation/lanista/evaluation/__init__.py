"""Judging players: protocols, statistics, findings, replays and reports."""

from importlib import import_module
from typing import Any

_PLACES = {
    "Evaluation": "evaluation",
    "Finding": "findings",
    "GoalProtocol": "evaluation",
    "Interval": "statistics",
    "RecordedPath": "paths",
    "ReplayResult": "replay",
    "ReportInput": "report",
    "collect_report_input": "report",
    "default_worlds": "protocol",
    "evaluate": "protocol",
    "replay": "replay",
    "shortest_paths": "paths",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
