"""VLLMModel with vLLM itself, in an environment of its own; and its errors without vLLM."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest
from vllm_places import ROOT, vllm_python, vllm_settings

from swarm_ui.errors import MissingExtra
from swarm_ui.nodes import VLLMModel

CHECKS = "tests/nodes/served_by_vllm/vllm_checks.py"


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed here")
def test_without_vllm_the_error_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"vllm"):
        VLLMModel(tmp_path)


@pytest.mark.vllm
@pytest.mark.timeout(1800)
def test_vllms_engine() -> None:
    """Minutes, almost all for imports; about 3 GB of memory."""

    own = ["--noconftest", "-o", "addopts=", "-o", "filterwarnings=default", "-p",
           "no:cacheprovider", "-o", "asyncio_mode=strict"]  # fmt: skip
    done = subprocess.run(
        [str(vllm_python()), "-m", "pytest", *own, "-q", "--timeout=1500", CHECKS],
        cwd=ROOT,
        env={**os.environ, **vllm_settings(), "PYTHONPATH": str(ROOT),
             "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=1700,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-8000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) == 3, said[-2000:]
