"""The report: one self-contained HTML page made from plain data."""

from importlib import import_module
from typing import Any

_PLACES = {
    "AgentReport": "inputs",
    "ReportInput": "inputs",
    "VideoClip": "inputs",
    "collect_report_input": "collect",
    "render_report": "page",
    "write_report": "page",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
