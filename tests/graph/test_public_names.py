"""The public face: what `swarm_ui` exports, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys

import swarm_ui

COST = """
import json, sys, time
before = time.process_time()
import swarm_ui
spent = time.process_time() - before
heavy = {"torch", "transformers", "numpy", "networkx", "openai", "rich", "PIL", "pandas"}
print(json.dumps([spent, sorted(heavy & set(sys.modules)), "swarm_ui.nodes" in sys.modules]))
"""


def test_exports_are_sorted_and_all_there() -> None:
    assert swarm_ui.__all__ == sorted(swarm_ui.__all__)
    assert [name for name in swarm_ui.__all__ if not hasattr(swarm_ui, name)] == []


def test_import_is_light() -> None:
    output = subprocess.run(
        [sys.executable, "-c", COST], capture_output=True, text=True, check=True
    ).stdout
    spent, heavy, nodes = json.loads(output)
    assert heavy == [] and nodes is False
    assert spent < 0.2
