"""Playing by hand: other users of the machine cannot read the token of the page."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlparse

import pytest

from swarm_ui.environments.play.server import open_privately

ADDRESS = "http://127.0.0.1:4711/s3cret-token/"


def test_the_token_is_not_on_the_command_line_of_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho \"$@\" > '{tmp_path}/part'\nmv '{tmp_path}/part' "
                       f"'{tmp_path}/seen'\n", encoding="utf-8")  # fmt: skip
    browser.chmod(0o755)
    code = "from swarm_ui.environments.play.server import open_privately as o\n"
    code += f"import time, pathlib\no({ADDRESS!r})\n"
    code += f"while not pathlib.Path({str(tmp_path)!r}, 'seen').exists(): time.sleep(0.02)\n"
    code += f"print(pathlib.Path({str(tmp_path)!r}, 'seen').read_text().strip())\n"
    code += f"page = pathlib.Path(open({str(tmp_path)!r} + '/seen').read().strip()[7:])\n"
    code += "print(oct(page.stat().st_mode), page.read_text())"
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    seen, page = done.stdout.splitlines()
    assert "s3cret" not in seen and seen.startswith("file:///")
    assert ADDRESS in page and page.startswith(oct(stat.S_IFREG | 0o600))
    assert not Path(urlparse(seen).path).exists(), "the file goes with the program"


def test_the_page_quotes_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)) or True)
    assert open_privately('http://127.0.0.1:1/"><script>')
    assert "<script>" not in Path(urlparse(opened[0]).path).read_text(encoding="utf-8")
