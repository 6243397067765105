"""Where the slow tests find vLLM's environment and SmolLM2; they skip where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.speed.environments import VLLM_VARIABLE, interpreter

ROOT = Path(__file__).resolve().parents[2]
MODEL = "SWARM_UI_SMOLLM2"


def vllm_python() -> Path:
    """The Python of the environment with vLLM."""
    try:
        return interpreter("vllm")
    except FileNotFoundError as error:
        if os.environ.get(VLLM_VARIABLE):
            pytest.fail(str(error))
        pytest.skip(str(error))


def smollm2() -> Path:
    """The folder of SmolLM2 as transformers saves it."""
    given = os.environ.get(MODEL)
    if not given:
        pytest.skip(f"no SmolLM2: {MODEL} must name its folder")
    if not (Path(given) / "config.json").is_file():
        pytest.fail(f"{MODEL} must name the folder of a model, got {given!r}")
    return Path(given)
