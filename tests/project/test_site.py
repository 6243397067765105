"""The documentation site builds without a warning, and shows what it promises."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The site takes ten seconds to build, once in every process that runs one of these tests.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]  # a warning is an error
    return folder


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert 'src="http' not in page, path
        assert '<link rel="stylesheet" href="http' not in page, path


def test_every_page_is_in_the_navigation(site: Path) -> None:
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")} - {"404.html"}
    start = (site / "index.html").read_text(encoding="utf-8")
    assert {page for page in pages if f'href="{page}"' not in start} <= {"index.html"}
    guides = {f"howto/{path.stem}.html" for path in (ROOT / "docs" / "howto").glob("*.md")}
    assert guides and guides <= pages


@pytest.mark.parametrize(
    "module",
    ["", ".nodes", ".viz", ".report", ".optim.stage1", ".experiment"]
    + [f".environments.{name}" for name in ("phone", "miniwob", "wrappers")],
)
def test_the_reference_has_every_public_name(site: Path, module: str) -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (site / "reference").iterdir())
    found = importlib.import_module(f"swarm_ui{module}")
    public = {name: getattr(found, name) for name in found.__all__}
    lost = [
        name
        for name, thing in public.items()
        if inspect.isclass(thing) or inspect.isfunction(thing)
        if f'id="{thing.__module__}.{thing.__qualname__}"' not in pages
        and f'id="{found.__name__}.{name}"' not in pages
    ]
    assert public and lost == []
