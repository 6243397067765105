"""MiniWoB++ pages start and reward as they did when ``pages.json`` was recorded."""

from __future__ import annotations

import json
from typing import Any

import pages
import pytest
from miniwob_browser import needs_browser

pytestmark = [pytest.mark.browser, needs_browser()]
RECORD: dict[str, Any] = json.loads(pages.FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "step", [pytest.param(6, id="a sixth"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
async def test_starts_and_rewards_of_pages(step: int) -> None:
    chosen = pages.starts()[::step]
    recorded = {name: RECORD["starts"][name] for name in (f"{t} {s}" for t, s in chosen)}
    played = json.loads(json.dumps(await pages.record(chosen)))
    if pages.browser_version() != RECORD["browser"]:  # another build lays texts out otherwise
        for told in (*recorded.values(), *played.values()):
            told.pop("bounds")
    assert {k: (v, recorded[k]) for k, v in played.items() if v != recorded[k]} == {}
    assert played.keys() == recorded.keys()
