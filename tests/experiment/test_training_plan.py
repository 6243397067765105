"""The plan of a training run: the settings that it would use, and an estimate of its memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from text_models import text_model

from swarm_ui.experiment.config import Draft
from swarm_ui.experiment.runs import check_training_config, trainer_config
from swarm_ui.experiment.training.plan import training_facts


def facts(processes: int = 1, **given: object) -> dict[str, str]:
    draft = Draft()
    draft.put(("environment", "name"), "phone", "ENV")
    for name, value in given.items():
        draft.put(tuple(name.split("__")), value, name)
    config = check_training_config(draft)
    return training_facts(config, trainer_config(config), processes)


def test_naming_the_method_does_not_change_the_steps() -> None:
    """It used to raise them from 35 to 75."""
    found = facts(train__update__method="rft")
    said = "rft, 35 steps an adapter, 75 while one is shared, rate 0.003, at most 65,536 tokens"
    assert found["update"].startswith(said)
    assert found["memory"].startswith("about ") and "estimate" in found["memory"]


def test_the_memory_follows_the_settings(tmp_path: Path) -> None:
    model = text_model()
    model.network.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    plain, cast = facts(model__name=str(tmp_path)), facts(
        model__name=str(tmp_path), train__update__autocast=True, train__update__checkpointing=True
    )  # fmt: skip
    assert plain["memory"] != cast["memory"]
    assert "activations" in plain["memory"]


@pytest.mark.parametrize("name", ["org/some-model"])
def test_a_model_that_is_still_on_the_hub_is_not_downloaded(name: str) -> None:
    found = facts(model__name=name)
    assert found["memory"] == "not known before the model is downloaded"


def test_the_plan_says_which_process_trains_what() -> None:
    alone, found = facts(team__agents=3), facts(2, team__agents=3)
    assert "processes" not in alone
    assert found["processes"] == (
        "2; the first one plays. iterations 1 to 3: all train agent_0, at most 16 of 32 examples "
        "of a batch each; then: process 1 agent_0+agent_2, process 2 agent_1"
    )
    assert found["memory"] == f"in each process {alone['memory']}"
    own = facts(2, team__agents=3, train__shared_iterations=0, train__spread="batches")
    assert own["processes"].startswith(
        "2; the first one plays. all train agent_0, agent_1, agent_2"
    )
    few = facts(4, team__agents=2, train__shared_iterations=0, train__spread="adapters")
    assert few["processes"].endswith("process 2 agent_1, process 3 none, process 4 none")
    hub = facts(2, model__name="org/some-model")
    assert hub["processes"] and hub["memory"] == "not known before the model is downloaded"


def test_fsdp_divides_the_weights_and_a_server_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = facts(2, team__agents=3)
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    divided = facts(2, team__agents=3)
    assert divided["processes"].endswith("then: all train agent_0, agent_1, agent_2, at most 16 of "
                                         "32 examples of a batch each")  # fmt: skip
    assert "cache 0.0 MiB" in divided["memory"] and divided["memory"] != whole["memory"]
