"""What all tests share: determinism, no keys, no downloads, one thread."""

from __future__ import annotations

import functools
import gc
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from cli_world import Shell
    from shared_browser import SharedBrowser

# Read when torch is first imported: threads that fight for two cores are ten times slower.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
# Read by rich and typer, the latter when it is imported: what is printed depends on no terminal.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "CLICOLOR",
             "CLICOLOR_FORCE", "COLORTERM", "GITHUB_ACTIONS", "TTY_COMPATIBLE",
             "TTY_INTERACTIVE", "JUPYTER_COLUMNS", "JUPYTER_LINES"):  # fmt: skip
    os.environ.pop(name, None)
os.environ["TERM"] = "xterm"
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", MPLBACKEND="Agg")

# Each client of an endpoint reads the certificates of the machine, which takes 20 ms.
ssl.create_default_context = functools.cache(ssl.create_default_context)

# The tests import a million objects that live to the end. Without the two steps below, the garbage
# collector looks through all of them again and again, for a fifth of the CPU time of the suite.
gc.disable()

hypothesis.settings.register_profile(
    "deterministic", derandomize=True, deadline=None, max_examples=30
)
hypothesis.settings.load_profile("deterministic")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Exempt what was imported from garbage collection; the objects of the tests are collected."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may reach a paid endpoint by way of the user's environment."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """Types commands, in an empty folder."""
    from cli_world import Shell

    return Shell(tmp_path, capsys, monkeypatch)


@pytest.fixture(scope="session")
def chromium() -> Iterator[SharedBrowser]:
    """A running Chromium for many tests; skips the test, with the reason, where there is none."""
    pytest.importorskip("playwright")
    from shared_browser import SharedBrowser

    from swarm_ui.environments.miniwob import find_browser

    binary = find_browser()
    if binary is None:
        pytest.skip("no Chromium is installed")
    browser = SharedBrowser(binary)
    yield browser
    browser.close()
