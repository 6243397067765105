"""The report in a real browser: it draws, its keys work, and smuggled markup does not run."""

from __future__ import annotations

import base64
import re
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest
from report_samples import report

from swarm_ui.report import page

pytestmark = pytest.mark.browser

# Stands for a person with a keyboard; allowed by its own hash beside the viewer's.
PRESS = "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));"


def rendered(chromium: str, html: str, folder: Path) -> tuple[str, str]:
    """The page's DOM after its scripts ran, and what the browser logged."""
    path = folder / "report.html"
    path.write_text(html, encoding="utf-8")
    done = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=2000", "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )  # fmt: skip
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def test_viewer_draws_and_attack_stays_text(chromium: str, tmp_path: Path) -> None:
    attack = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    dom, console = rendered(chromium, page(report(attack)), tmp_path)
    assert console == ""
    assert "<title>owned" not in dom
    assert "step 1 of 3" in dom
    assert 'class="elements"' in dom
    assert '<img src="x"' not in dom


def test_arrow_key_steps_on(chromium: str, tmp_path: Path) -> None:
    digest = base64.b64encode(sha256(PRESS.encode()).digest()).decode()
    html = page(report()).replace("script-src ", f"script-src &#x27;sha256-{digest}&#x27; ")
    html = html.replace("</body>", f"<script>{PRESS}</script></body>")
    dom, console = rendered(chromium, html, tmp_path)
    assert console == ""
    assert "step 2 of 3" in dom


def test_policy_stops_any_other_script(chromium: str, tmp_path: Path) -> None:
    html = page(report()).replace("</body>", "<script>document.title='owned'</script></body>")
    dom, console = rendered(chromium, html, tmp_path)
    assert "<title>owned" not in dom
    assert re.search("Content.Security.Policy", console)
