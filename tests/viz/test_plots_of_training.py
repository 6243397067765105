"""Plots are written without a display, and unscored cells are drawn as such."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.stats import wilson
from swarm_ui.viz.plots import plot_credit, plot_success

pytest.importorskip("matplotlib")


def test_success_as_png(tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "plots" / "success.png"
    plot_success({"team": [wilson([1, 0, 1]), None, wilson([1, 1, 1])], "base": []}, path)
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert picture.width > 400


def test_credit_as_svg_marks_unscored_cells(tmp_path: Path) -> None:
    path = tmp_path / "credit.svg"
    plot_credit([[1.0, None], [0.0, 0.5]], ["agent_0", "agent_1"], path, title="scripted critic")
    text = path.read_text()
    comments = re.findall(r"<!-- (.*?) -->", text)
    assert {"1", "–", "0", "0.5", "round 2", "scripted critic"} <= set(comments)
    with pytest.raises(ConfigError, match=r"\.png or \.svg"):
        plot_credit([[1.0]], ["a"], tmp_path / "credit.gif")
