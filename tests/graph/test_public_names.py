"""The public face: what `swarm_ui` exports, and what importing it costs."""

from __future__ import annotations

import json
import subprocess
import sys

import swarm_ui

IMPORTED = """
import json, sys
before = set(sys.modules)
import swarm_ui
packages = {name.partition(".")[0] for name in set(sys.modules) - before} - {"__mp_main__"}
print(json.dumps([sorted(packages - sys.stdlib_module_names), "swarm_ui.nodes" in sys.modules]))
"""


def test_exports_are_sorted_and_all_there() -> None:
    assert swarm_ui.__all__ == sorted(swarm_ui.__all__)
    assert [name for name in swarm_ui.__all__ if not hasattr(swarm_ui, name)] == []


def test_import_is_light() -> None:
    output = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    ).stdout
    packages, nodes = json.loads(output)
    assert set(packages) <= {"msgspec", "swarm_ui", "typing_extensions"}
    assert nodes is False
