"""Recording through ``sys.monitoring``: for functions without source, and for ``edge``."""

import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from lanista.envs.errors import RunError

_NAME = "lanista"
_handlers: dict[int, tuple[CodeType, Callable[[CodeType], None]]] = {}
_tool: int | None = None


def monitor(codes: Iterable[tuple[CodeType, Callable[[CodeType], None]]]) -> None:
    """Call each handler with its code object at every entry (a generator's first step counts).

    Raises:
        RunError: If every tool number of ``sys.monitoring`` is taken.
    """
    for code, handler in codes:
        tool = _claim()
        # The code object is kept, so that its address stays its own.
        _handlers[id(code)] = (code, handler)
        sys.monitoring.set_local_events(tool, code, sys.monitoring.events.PY_START)


def stop_monitoring(codes: Iterable[CodeType]) -> None:
    """Stop calling the handlers of these code objects, and give the tool back with the last."""
    global _tool
    for code in codes:
        if _handlers.pop(id(code), None) is not None and _tool is not None:
            sys.monitoring.set_local_events(_tool, code, sys.monitoring.events.NO_EVENTS)
    if not _handlers and _tool is not None:
        sys.monitoring.register_callback(_tool, sys.monitoring.events.PY_START, None)
        sys.monitoring.free_tool_id(_tool)
        _tool = None


def _claim() -> int:
    global _tool
    if _tool is None:
        for number in (4, 3):
            try:
                sys.monitoring.use_tool_id(number, _NAME)
            except ValueError:
                continue
            sys.monitoring.register_callback(number, sys.monitoring.events.PY_START, _started)
            _tool = number
            break
        else:
            raise RunError(
                "Every tool number of sys.monitoring is taken; stop another profiler or debugger."
            )
    return _tool


def _started(code: CodeType, offset: int) -> Any:
    del offset
    found = _handlers.get(id(code))
    if found is not None:
        found[1](code)
