"""The list of MiniWoB++ tasks, as the installed wheel tells it."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from swarm_ui.environments.miniwob import (
    REFERENCE_TASKS,
    all_html_tasks,
    blind_tasks,
)
from swarm_ui.environments.miniwob.tasks import html_folder, keeps_state
from swarm_ui.errors import MissingExtra

needs_wheel = pytest.mark.skipif(
    importlib.util.find_spec("miniwob") is None, reason="not installed: miniwob"
)


@needs_wheel
def test_reference_and_blind_tasks_are_all_html_tasks() -> None:
    assert len(REFERENCE_TASKS) == len(set(REFERENCE_TASKS)) == 49
    assert sorted((*REFERENCE_TASKS, *blind_tasks())) == list(all_html_tasks())
    assert len(all_html_tasks()) >= 125
    assert not [name for name in all_html_tasks() if not (html_folder() / f"{name}.html").exists()]
    assert keeps_state() < set(all_html_tasks())
    assert keeps_state()


@needs_wheel
def test_reading_the_tasks_does_not_import_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "miniwob", raising=False)
    assert all_html_tasks()
    assert "miniwob" not in sys.modules


def test_a_missing_wheel_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"swarm-ui\[web\]"):
        html_folder()
