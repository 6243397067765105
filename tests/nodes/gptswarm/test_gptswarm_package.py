"""GPTSwarm interop against the real package, in an environment of its own."""

from __future__ import annotations

import re

import pytest
from gptswarm_env import NoPython, python, run_checks


@pytest.mark.gptswarm
@pytest.mark.timeout(3600)
def test_the_real_package() -> None:
    try:
        interpreter = python()
    except NoPython as reason:
        pytest.skip(str(reason))
    done = run_checks(interpreter)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-8000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) >= 21, said[-2000:]
    assert "skipped" not in done.stdout
