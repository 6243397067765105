"""The splits of the pages."""

from __future__ import annotations

import pytest
from miniwob_browser import needs_browser

from swarm_ui.environments.miniwob import blind_tasks
from swarm_ui.environments.miniwob.benchmark import MiniWob
from swarm_ui.environments.miniwob.tasks import split_of

pytestmark = [pytest.mark.browser, needs_browser()]


@pytest.mark.parametrize(
    ("tasks", "split"),
    [
        ((), "reference"),
        (("click-test", "enter-text"), "reference"),
        (("use-slider",), "blind"),
        (("use-slider", "find-greatest"), "blind"),
        (("use-slider", "click-test"), "all"),
    ],
)
def test_results_of_chosen_tasks_are_labelled_with_their_split(
    tasks: tuple[str, ...], split: str
) -> None:
    assert MiniWob(tasks=tasks).test_split() == split
    assert split_of(blind_tasks()) == "blind"


def test_a_task_outside_the_split_is_refused() -> None:
    env = MiniWob(tasks=("use-slider",))
    assert list(env.mistakes(("reference",))) == [
        ("tasks", "'use-slider' is not in the split 'reference'; leave the split out")
    ]
    assert not list(env.mistakes(("blind", "all")))
