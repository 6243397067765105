"""One adapter for each agent, one for all, or one for each group: a setting of the trainer."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from learning_fakes import ButtonWorld, TinyAgent, TinyModel, button_team
from learning_run import CONFIG, run, sample_jobs, trainer

from swarm_ui.errors import ConfigError
from swarm_ui.graph.graph import CollabGraph
from swarm_ui.nodes.function import FunctionNode
from swarm_ui.optim.callbacks import Callbacks
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.credit.assigners.critic import ScriptedCritic
from swarm_ui.optim.state import TeamState
from swarm_ui.optim.trainer import TeamTrainer
from swarm_ui.optim.update.adapter_groups import SHARED, adapters_by_agent, with_adapters
from swarm_ui.trace.records import Episode

PAIR: dict[str, tuple[str, ...]] = {"two": ("agent_0", "agent_2"), "one": ("agent_1",)}


def team(names: list[str | None]) -> CollabGraph:
    return CollabGraph.collaborative(
        len(names), 2, model=TinyAgent(TinyModel()), edges=[], adapters=names
    )


def spoken(episodes: list[Episode]) -> dict[str, set[str]]:
    """The adapters each agent answered with, without their versions."""
    found: dict[str, set[str]] = {}
    for episode in episodes:
        for record in episode.steps:
            for call in record.trace.calls:
                if call.adapter is not None:
                    found.setdefault(call.node, set()).add(call.adapter.partition("@")[0])
    return found


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("per_node", {f"agent_{k}": f"agent_{k}" for k in range(3)}),
        ("shared", {f"agent_{k}": SHARED for k in range(3)}),
        (PAIR, {"agent_0": "two", "agent_1": "one", "agent_2": "two"}),
    ],
)
def test_the_setting_decides_who_speaks_with_and_trains_what(
    setting: Any, expected: dict[str, str]
) -> None:
    heard: list[Episode] = []
    model = TinyModel()
    config = replace(CONFIG, iterations=2, adapters=setting)
    made = trainer(
        model, config=config, callbacks=Callbacks(on_episodes=lambda _, e: heard.extend(e))
    )
    assert made.adapters == expected
    history = asyncio.run(made.run()).history
    assert spoken(heard) == {agent: {name} for agent, name in expected.items()}
    assert set(model.adapters) == set(expected.values())
    assert [u.adapter for u in history[1].updates] == list(dict.fromkeys(expected.values()))
    assert all(update.steps == 10 for update in history[1].updates)
    # The team that was trained can be taken on: its agents name the adapters.
    assert [getattr(made.graph.nodes[a], "adapter", None) for a in expected] == [*expected.values()]


def test_a_shared_adapter_learns_from_everybodys_pairs_and_the_others_from_their_own() -> None:
    def pairs(setting: Any) -> dict[str, int]:
        config = replace(CONFIG, iterations=1, shared_iterations=0, bootstrap=0.0, adapters=setting)
        found = replace(config, update=replace(CONFIG.update, unique=False))
        (metrics,) = run(TinyModel(), None, config=found).history
        return {"all": sum(metrics.pairs.values())} | {
            update.adapter: update.pairs for update in metrics.updates
        }

    shared, each, grouped_ = pairs("shared"), pairs("per_node"), pairs(PAIR)
    assert shared["all"] == each["all"] == grouped_["all"] > 0
    assert sum(n for name, n in each.items() if name != "all") == shared[SHARED]
    assert grouped_["two"] == each["agent_0"] + each["agent_2"]
    assert grouped_["one"] == each["agent_1"]


@pytest.mark.parametrize("setting", ["shared", PAIR])
def test_resumed_and_saved_it_is_as_if_never_interrupted(tmp_path: Path, setting: Any) -> None:
    config = replace(CONFIG, adapters=setting)
    whole, resumed = TinyModel(), TinyModel()
    expected = run(whole, tmp_path / "whole", config=config)
    shutil.copytree(tmp_path / "whole", tmp_path / "part")
    shutil.rmtree(tmp_path / "part" / "checkpoints" / "iteration-0003")
    result = run(resumed, tmp_path / "part", resume=True, config=config)
    assert resumed.versions == whole.versions
    for name in whole.adapters:
        ours, theirs = resumed.adapter_parameters(name), whole.adapter_parameters(name)
        assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))
    assert torch.equal(result.edges.logits, expected.edges.logits)
    resumed.save_adapters(tmp_path / "out")
    again = TinyModel()
    again.load_adapters(tmp_path / "out")
    assert again.versions == whole.versions
    kept = json.loads((tmp_path / "part/checkpoints/iteration-0003/state.json").read_text())
    names = {"agent_0": "two", "agent_1": "one", "agent_2": "two"}
    assert kept["adapters"] == (dict.fromkeys(names, SHARED) if setting == "shared" else names)


def test_a_run_goes_on_with_the_adapters_it_was_begun_with_only(tmp_path: Path) -> None:
    run(TinyModel(), tmp_path, config=replace(CONFIG, iterations=1))
    with pytest.raises(ConfigError, match=r"started with other adapters .*'agent_0': 'team'"):
        run(TinyModel(), tmp_path, resume=True, config=replace(CONFIG, adapters="shared"))
    groups = replace(CONFIG, adapters={"x": ("agent_0", "agent_1"), "y": ("agent_2",)})
    with pytest.raises(ConfigError, match="started with other adapters"):
        run(TinyModel(), tmp_path, resume=True, config=groups)


def test_a_state_from_before_adapters_were_kept_is_taken_up() -> None:
    state = msgspec.json.decode(b'{"iteration": 2}', type=TeamState)
    assert state.adapters == {}


def test_names_that_the_agents_bear_are_kept_where_they_fit() -> None:
    assert adapters_by_agent(team(["a", None])) == {"agent_0": "a", "agent_1": "agent_1"}
    assert adapters_by_agent(team(["a", "a"]), "shared") == {"agent_0": "a", "agent_1": "a"}
    assert adapters_by_agent(team(["a", "b"]), "shared") == {"agent_0": SHARED, "agent_1": SHARED}
    graph = team(["a", "b"])
    changed = with_adapters(graph, {"agent_0": "b", "agent_1": "b"})
    assert adapters_by_agent(changed, "shared") == {"agent_0": "b", "agent_1": "b"}
    assert adapters_by_agent(graph) == {"agent_0": "a", "agent_1": "b"}, "graphs never change"


def test_agents_that_are_not_the_librarys_are_left_alone() -> None:
    node = FunctionNode("other", lambda inbox, context: "words")
    graph = CollabGraph([node])
    assert with_adapters(graph, adapters_by_agent(graph, "shared")).nodes["other"] is node


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("each", "per_node"),
        ({}, "at least one group"),
        ({"a": ()}, "'a' is none"),
        ({"a": "agent_0"}, "'a' is none"),
        ({"a": ("agent_0",), "b": ("agent_0",)}, r"agent_0: in several"),
    ],
)
def test_settings_that_say_nothing_of_use_are_refused(setting: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"adapters must be .*{words}"):
        TeamConfig(adapters=setting)


def test_groups_must_fit_the_team() -> None:
    with pytest.raises(ConfigError, match="no adapter given for agent_1, agent_2"):
        trainer(TinyModel(), config=replace(CONFIG, adapters={"a": ("agent_0",)}))
    extra = {"a": ("agent_0", "agent_1", "agent_2", "agent_9")}
    with pytest.raises(ConfigError, match="agent_9, but the team has"):
        trainer(TinyModel(), config=replace(CONFIG, adapters=extra))
    model = TinyModel()
    same = with_adapters(button_team(model), dict.fromkeys(["agent_0", "agent_1"], "x"))
    with pytest.raises(ConfigError, match="agent_0, agent_1 all use adapter 'x'"):
        TeamTrainer(model, same, ButtonWorld, sample_jobs, critic=ScriptedCritic(ButtonWorld))


def test_groups_are_read_from_a_file_of_settings() -> None:
    read = msgspec.convert({"adapters": {"a": ["agent_0"], "b": ["agent_1"]}}, TeamConfig)
    assert read.adapters == {"a": ("agent_0",), "b": ("agent_1",)}
    assert msgspec.convert({"adapters": "shared"}, TeamConfig).adapters == "shared"
