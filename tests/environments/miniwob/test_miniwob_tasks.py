"""The list of MiniWoB++ tasks and their splits, as the installed wheel tells them."""

from __future__ import annotations

import sys

import pytest
from miniwob_browser import needs_browser

from swarm_ui.environments.miniwob import REFERENCE_TASKS, all_html_tasks, blind_tasks
from swarm_ui.environments.miniwob.benchmark import MiniWob
from swarm_ui.environments.miniwob.tasks import html_folder, keeps_state
from swarm_ui.errors import MissingExtra

pytestmark = [pytest.mark.browser, needs_browser()]


def test_reference_and_blind_tasks_are_all_html_tasks() -> None:
    assert len(REFERENCE_TASKS) == len(set(REFERENCE_TASKS)) == 49
    assert sorted((*REFERENCE_TASKS, *blind_tasks())) == list(all_html_tasks())
    assert len(all_html_tasks()) >= 125
    assert not [name for name in all_html_tasks() if not (html_folder() / f"{name}.html").exists()]
    assert set() < keeps_state() < set(all_html_tasks())
    assert "miniwob" not in sys.modules, "reading the tasks does not import the wheel"


def test_a_missing_wheel_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"swarm-ui\[web\]"):
        html_folder()


def test_a_task_outside_the_split_is_refused() -> None:
    env = MiniWob(tasks=("use-slider",))
    assert [place for place, _ in env.mistakes(("reference",))] == ["tasks"]
    assert not list(env.mistakes(("blind", "all")))
