"""The parts that the demos are made of."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from swarm_ui.environments.base import at_once
from swarm_ui.errors import ConfigError
from swarm_ui.experiment import settings
from swarm_ui.experiment.demo import flows, options
from swarm_ui.experiment.demo.demo_run import DemoRun, agent_folder
from swarm_ui.experiment.environments import phone
from swarm_ui.experiment.progress import ProgressDisplay
from swarm_ui.experiment.settings import Settings
from swarm_ui.experiment.teams import GENERAL, base_arms, trained_arms
from swarm_ui.nodes.models.scripted import ScriptedModel
from swarm_ui.nodes.models.tiny_agent.shipped_agents import BASE_AGENT, GENERAL_AGENT
from swarm_ui.report.results import ArmResult, Cost, Results
from swarm_ui.storage.run_directory import RunDirectory

JOBS = tuple(("open-app", 20_000_000 + k) for k in range(4))


def result(arm: str, outcomes: tuple[float | None, ...], **other: object) -> ArmResult:
    given: dict[str, object] = {
        "split": "parameters", "environment": "phone (simulated)", "label": arm, "jobs": JOBS,
        "work": Cost(decisions=4, calls=8), **other,
    }  # fmt: skip
    return ArmResult(arm=arm, outcomes=outcomes, **given)  # type: ignore[arg-type]


def test_settings_come_back_from_json() -> None:
    given = dataclasses.replace(Settings(), tasks=("open-app",), seed=3, edges="learned")
    assert settings.restored(settings.plain(given), "run") == given


def test_quick_asks_for_less() -> None:
    quick, full = options.parse(["--quick"]).settings, options.parse([]).settings
    learned_from = {"devices": 256, "teacher": True, "rank": 64}
    assert full == dataclasses.replace(Settings(), **learned_from)
    assert quick.iterations * quick.episodes < full.iterations * full.episodes
    assert len(base_arms(quick)) < len(base_arms(full))


def test_teacher_and_devices_can_be_left_out_and_other_models_have_none() -> None:
    without = ["--devices", "0", "--no-teacher", "--rank", "16"]
    assert options.parse(without).settings == Settings()
    assert options.parse(["--tasks", "open-app"]).settings.devices == 0
    for words in (["--model", "smollm2"], ["--env", "miniwob"], ["--env", "androidworld"]):
        asked = options.parse(words).settings
        assert (asked.devices, asked.teacher, asked.rank) == (0, False, 16)
    taught = options.parse(["--model", "smollm2", "--iterations", "1", "--teacher"]).settings
    assert taught.teacher
    with pytest.raises(ConfigError, match="--devices and --teacher are for --env phone"):
        options.parse(["--env", "miniwob", "--teacher"])


def test_half_of_the_training_is_on_invented_devices() -> None:
    asked = dataclasses.replace(Settings(), devices=8)
    jobs = phone.training_jobs(asked, 40, random.Random(1))
    own = [task for task, _ in jobs if task.startswith("invented-")]
    assert len(jobs) == 40 and len(own) == 20
    assert {int(task.split("-")[1]) for task in own} <= set(range(500_000, 500_008))
    for task, seed in jobs:
        at_once(phone.training_phone(asked).make_environment().reset(task=task, seed=seed))
    alone = phone.training_jobs(Settings(), 40, random.Random(1))
    assert not any(task.startswith("invented-") for task, _ in alone)
    assert phone.training_phone(Settings()).teacher is None
    assert "the solver showed" in phone.training_label(options.parse([]).settings)
    assert "the solver showed" not in phone.training_label(Settings())


def test_the_command_that_continues_a_run_can_be_pasted() -> None:
    run = DemoRun(
        Settings(model="m"), RunDirectory(Path("my runs/1")), ProgressDisplay(), Results()
    )
    assert run.resume == "--resume 'my runs/1' --trust"


def test_options_go_into_the_settings() -> None:
    asked = options.parse(["--iterations", "5", "--tasks", "open-app,notes-pin", "--out", "x"])
    assert asked.out == Path("x")
    assert asked.settings.iterations == 5
    assert asked.settings.shared_iterations == 3
    assert asked.settings.tasks == ("open-app", "notes-pin")


def test_the_demo_starts_from_the_base_agent_or_the_named_one() -> None:
    assert agent_folder(options.parse([]).settings) == BASE_AGENT
    assert agent_folder(options.parse(["--quick", "--agent", "general"]).settings) == GENERAL_AGENT
    assert agent_folder(options.parse(["--agent", "mine"]).settings) == Path("mine")
    assert agent_folder(Settings()) == BASE_AGENT
    before = {k: v for k, v in settings.plain(Settings()).items() if k != "agent"}
    assert agent_folder(settings.restored(before, "a run of an older version")) == BASE_AGENT
    for other in (["--model", "smollm2"], ["--base-url", "u", "--model", "m"]):
        assert options.parse(other).settings.agent is None


def test_a_full_run_from_the_base_agent_also_plays_the_general_agent() -> None:
    def played(settings: Settings) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}

        async def note(trials: Any, agent: str, *_: Any, **__: Any) -> None:
            found[Path(agent).name] = [(trial.split, trial.arm.name) for trial in trials]

        run = SimpleNamespace(
            settings=settings,
            agent=agent_folder(settings),
            evaluator=SimpleNamespace(play_in_workers=note),
        )
        asyncio.run(flows._untrained(run, None))  # type: ignore[arg-type]
        return found

    splits = [(split, GENERAL) for split in ("parameters", "templates", "apps")]
    assert played(Settings())["general_agent"] == splits
    assert list(played(Settings(quick=True))) == ["base_agent"]
    assert list(played(Settings(agent="general"))) == ["general_agent"]
    assert GENERAL not in dict(played(Settings(agent="general"))["general_agent"]).values()


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(ConfigError, match="leave out --quick"):
        options.parse(["--resume", "run", "--quick"])


def test_results_of_another_version_are_refused(tmp_path: Path) -> None:
    results = Results(version=99)
    results.save(tmp_path)
    with pytest.raises(ConfigError, match="version 99"):
        Results.load(tmp_path)


def test_every_arm_makes_a_policy() -> None:
    class Scoring(ScriptedModel):
        async def score(self, requests: object, replies: object) -> list[float]:
            raise AssertionError("not asked here")

    model = Scoring(lambda request: "")
    edges = (("agent_1", "agent_0"), ("agent_0", "agent_3"))
    arms = [*base_arms(Settings()), *trained_arms(Settings(), edges, "unseen DAG")]
    assert len({arm.name for arm in arms}) == len({arm.label for arm in arms}) == len(arms)
    for arm in arms:
        assert arm.policy(model).name
    team = arms[-1].graph(model)
    assert team.communication_edges == edges
    assert team.rounds == 3
    assert [team.nodes[a].adapter for a in team.agents] == list(team.agents)  # type: ignore[attr-defined]


async def test_on_a_device_the_team_is_evaluated_and_not_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the phone in the place of the emulator."""
    pytest.importorskip("torch")
    from swarm_ui.environments.phone import PhoneEnvironment, vocabulary
    from swarm_ui.experiment.demo import flows, places
    from swarm_ui.experiment.demo.demo_run import DemoRun
    from swarm_ui.experiment.progress import ProgressDisplay
    from swarm_ui.nodes.models.tiny_agent.local_model import LocalModel
    from swarm_ui.nodes.models.tiny_agent.tokenizer import ScreenTokenizer
    from swarm_ui.storage.run_directory import RunDirectory

    agent = LocalModel.untrained(ScreenTokenizer(vocabulary()), width=16, layers=1, heads=2, seed=0)
    agent.save(tmp_path / "agent")
    asked = options.parse(
        ["--env", "androidworld", "--agent", str(tmp_path / "agent"), "--episodes-test", "2"]
    ).settings
    monkeypatch.setattr(places, "AndroidWorldEnvironment", PhoneEnvironment)
    run = RunDirectory.create(tmp_path / "run", config=settings.plain(asked))
    report = await flows.evaluate_only(DemoRun(asked, run, ProgressDisplay(), Results()))
    assert "AndroidWorld on an emulator" in report.read_text(encoding="utf-8")
    found = Results.load(run.path)
    assert [arm.arm for arm in found.arms] == ["base-greedy", "base-vote"]
    assert found.rollouts is None
