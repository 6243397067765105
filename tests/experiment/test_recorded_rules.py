"""What is held out where episodes were recorded is held out of the corpora made from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_ui.environments.benchmark import Opened
from swarm_ui.environments.phone import TRAIN_SEEDS, PhoneEnvironment
from swarm_ui.environments.phone.split import SplitPhone, split_tasks
from swarm_ui.environments.recorded.demonstrations import Recordings
from swarm_ui.errors import ConfigError
from swarm_ui.experiment.stage1 import rule_of_recordings
from swarm_ui.trace.jsonl import append_jsonl
from swarm_ui.trace.records import Episode


async def check(environment: str, task: str, path: Path) -> None:
    solved = Episode(environment=environment, task=task, seed=TRAIN_SEEDS[0], success=True)
    append_jsonl(path / task.replace("/", "-"), [solved])
    recordings = Recordings(path / task.replace("/", "-"))
    rule = await rule_of_recordings(Opened(recordings.environment), recordings.jobs())
    assert rule.seeds


@pytest.mark.parametrize(
    ("environment", "trained", "held_out"),
    [
        (PhoneEnvironment().name, "contacts-add", "recipes-star"),
        (SplitPhone().name, split_tasks("train")[0], split_tasks("new_templates")[0]),
        (SplitPhone().name, split_tasks("train")[1], split_tasks("validation")[0]),
    ],
)
async def test_held_out_templates_are_refused(
    environment: str, trained: str, held_out: str, tmp_path: Path
) -> None:
    await check(environment, trained, tmp_path)
    with pytest.raises(ConfigError, match=f"task '{held_out}' is held out"):
        await check(environment, held_out, tmp_path)
