"""Pictures can be read as ``<img>`` on pages of any colour, whatever the system's colours are."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from play_page import opened
from shared_browser import SharedBrowser

from swarm_ui.viz import edges_svg

pytestmark = pytest.mark.browser
pytest.importorskip("playwright")

# The brightest and the darkest pixel of the picture on its page, as [red, green, blue] sums.
PIXELS = """(() => {
  const img = document.querySelector('img');
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [img.width, img.height];
  const drawing = canvas.getContext('2d');
  drawing.fillStyle = getComputedStyle(document.body).backgroundColor;
  drawing.fillRect(0, 0, img.width, img.height);
  drawing.drawImage(img, 0, 0);
  const { data } = drawing.getImageData(8, 8, img.width - 16, img.height - 16);
  const sums = [];
  for (let k = 0; k < data.length; k += 4) sums.push(data[k] + data[k + 1] + data[k + 2]);
  return [Math.min(...sums), Math.max(...sums)];
})()"""


@pytest.mark.parametrize("page", ["white", "black"])
@pytest.mark.parametrize("system", ["light", "dark"])
async def test_lines_stand_out_from_the_ground(
    chromium: SharedBrowser, tmp_path: Path, page: str, system: str
) -> None:
    drawn = edges_svg({("a", "b"): 0.9, ("b", "c"): 0.4}, ["a", "b", "c"], title="edges")
    source = f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}"
    path = tmp_path / "page.html"
    path.write_text(f'<body data-turn style="background:{page}"><img src="{source}">')
    async with opened(chromium, path.as_uri()) as tab:
        mode = {"name": "prefers-color-scheme", "value": system}
        await tab.call("Emulation.setEmulatedMedia", features=[mode])
        await tab.until("document.querySelector('img').complete")
        darkest, brightest = await tab.js(PIXELS)
        assert brightest - darkest > 450, "of 765"
