"""Run the benchmarks, all or those named: ``python -m benchmarks tracing crafter``."""

import importlib
import sys

NAMES = ("tracing", "crafter", "call_stack", "godot")

if __name__ == "__main__":
    chosen = sys.argv[1:] or NAMES
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"error: no benchmark is named {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name in chosen:
        importlib.import_module(f"benchmarks.{name}").main()
        print(flush=True)
