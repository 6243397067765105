"""The notebooks in JupyterLab: started, opened, run and looked at in a real browser.

JupyterLab comes from an environment of its own, ``SWARM_UI_JUPYTER_ENV=/path/to/python``; its
kernels are those of this one. ``SWARM_UI_PICTURES=FOLDER`` keeps the screenshots.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from play_page import Tab, opened
from shared_browser import SharedBrowser

pytestmark = [pytest.mark.slow, pytest.mark.browser, pytest.mark.timeout(2400)]
pytest.importorskip("playwright")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "demos" / "notebooks"
NAMES = tuple(sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")))
TOKEN = "only-for-this-test"
PATIENCE = 900.0
"""Seconds for a page or a notebook, on a machine that is busy."""
SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}
KERNEL = "document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status"
CELLS = "document.querySelectorAll('.jp-Notebook .jp-CodeCell')"
PROMPTS = f"[...{CELLS}].map(cell => cell.querySelector('.jp-InputPrompt').innerText)"
OUTPUTS = "[...document.querySelectorAll('.jp-Notebook .jp-OutputArea-output')]"
DRAWN = f"{OUTPUTS}.filter(output => output.querySelector('svg, img'))"
TOO_WIDE = f"""{DRAWN}.filter(output => [...output.querySelectorAll('svg, img')].some(picture => {{
    let seen = picture;  // what is seen of it: the picture, or the box in which it scrolls
    for (let node = picture; node !== output.parentElement; node = node.parentElement)
        if (/auto|scroll/.test(getComputedStyle(node).overflowX)) seen = node;
    const cell = output.closest('.jp-Cell');
    return seen.getBoundingClientRect().right > cell.getBoundingClientRect().right;
}})).length"""


@dataclass(frozen=True, slots=True)
class Lab:
    """A running server."""

    address: str
    folder: Path

    def url(self, name: str) -> str:
        return f"{self.address}/lab/tree/{name}.ipynb?token={TOKEN}&reset"


def lab_python() -> str:
    given = os.environ.get("SWARM_UI_JUPYTER_ENV", "")
    if not Path(given).is_file():
        pytest.skip("no JupyterLab: name the Python of an environment in SWARM_UI_JUPYTER_ENV")
    return given


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(params=["light", "dark"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """A server that shows copies of the notebooks without their outputs."""
    work, settings, port = tmp_path / "work", tmp_path / "settings", free_port()
    work.mkdir()
    settings.mkdir()
    for name in NAMES:
        notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, work / f"{name}.ipynb")
    theme = {"theme": "JupyterLab Dark" if request.param == "dark" else "JupyterLab Light"}
    overrides = {**SETTINGS, "@jupyterlab/apputils-extension:themes": theme}
    (settings / "overrides.json").write_text(json.dumps(overrides))
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    places = {
        f"JUPYTER_{kind}_DIR": str(tmp_path / kind.lower())
        for kind in ("CONFIG", "DATA", "RUNTIME")
    }
    env = {**os.environ, **places, "JUPYTER_PATH": str(tmp_path / "jupyter")}
    env |= {"IPYTHONDIR": str(tmp_path / "ipython"), "PYTHONPATH": str(ROOT)}
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        env.pop(name, None)
    command = [
        lab_python(), "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={work}", f"--LabApp.app_settings_dir={settings}",
    ]  # fmt: skip
    with (tmp_path / "lab.log").open("w") as log:
        server = subprocess.Popen(command, cwd=work, env=env, stdout=log, stderr=log)
        try:
            yield Lab(f"http://127.0.0.1:{port}", work)
        finally:
            server.terminate()
            server.wait(60)


async def listening(lab: Lab) -> None:
    host, port = lab.address.removeprefix("http://").split(":")
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, int(port))
            except OSError:
                await asyncio.sleep(0.2)
            else:
                writer.close()
                return


async def holds(tab: Tab, expression: str) -> None:
    """Wait until something holds; seldom asked, so that the page has time for its own work."""
    async with asyncio.timeout(PATIENCE):
        while not await tab.js(expression):
            await asyncio.sleep(1)


async def ran(tab: Tab) -> list[str]:
    """Run all cells by the menu; the prompts of the cells when the last one is done."""
    await holds(tab, f"{KERNEL} === 'idle'")
    await tab.click(".lm-MenuBar-itemLabel", "Run")
    await holds(tab, "document.querySelector('.lm-Menu')?.getBoundingClientRect().top > 0")
    await asyncio.sleep(1)  # a menu is drawn first and then placed
    await tab.click(".lm-Menu-itemLabel", "Run All Cells")
    started = f"({PROMPTS}).some(text => text.trim() !== '[ ]:')"
    await tab.until(started)
    done = f"({PROMPTS}).every(text => /^\\[\\d+\\]:$/.test(text.trim()))"
    failed = f"{OUTPUTS}.some(o => o.querySelector('.jp-mod-error, [data-mime-type*=error]'))"
    await holds(tab, f"{done} || {failed}")
    return [str(text).strip() for text in await tab.js(PROMPTS)]


@pytest.mark.parametrize("name", NAMES)
async def test_it_opens_runs_and_shows_its_pictures(
    name: str,
    lab: Lab,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    chromium: SharedBrowser,
) -> None:
    stored = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    await listening(lab)
    async with opened(chromium, lab.url(name), 1440, 1000, ready="true") as tab:
        await holds(tab, f"{CELLS}.length === {len(code)}")
        await tab.click(".lm-TabBar-tab[data-id=filebrowser]")  # folds the sidebar away
        assert await ran(tab) == [f"[{k}]:" for k in range(1, len(code) + 1)]
        words = str(await tab.js(f"{OUTPUTS}.map(output => output.innerText).join('\\n')"))
        for cell in code:
            for output in cell.outputs:
                if output.output_type == "stream":
                    assert output.text.strip().splitlines()[0] in words
        kinds = {"image/svg+xml", "image/png"}
        drawn = [o for cell in code for o in cell.outputs if kinds & {*o.get("data", {})}]
        assert await tab.js(f"{DRAWN}.length") == len(drawn) > 0
        for width in (1440, 420):
            await looked_at(tab, width, tmp_path / f"{request.node.callspec.id}-{width}.png")
            assert await tab.js(TOO_WIDE) == 0, f"a picture is wider than its column at {width} px"


async def looked_at(tab: Tab, width: int, path: Path) -> None:
    """One tall screenshot, which is not empty; kept where a person asked for it."""
    await tab.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=9000, deviceScaleFactor=1, mobile=False,
    )  # fmt: skip
    await asyncio.sleep(2)
    await tab.js("document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0")
    await asyncio.sleep(1)
    await tab.picture(path)
    assert path.stat().st_size > 50_000
    if os.environ.get("SWARM_UI_PICTURES"):
        shutil.copy(path, Path(os.environ["SWARM_UI_PICTURES"]))
