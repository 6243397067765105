"""Measures one section, in a process of its own: ``python -m benchmarks.scaling SECTION``."""

from __future__ import annotations

import json
import sys

from benchmarks.scaling import bookkeeping, overhead, weak

SECTIONS = {
    "overhead": overhead.measure,
    "bookkeeping": bookkeeping.measure,
    "weak": weak.measure,
}

if __name__ == "__main__":
    print(json.dumps(SECTIONS[sys.argv[1]](quick="--quick" in sys.argv)))
