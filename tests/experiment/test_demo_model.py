"""The demo with a language model in this process: what it trains, at which rate, from what."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.demo import demo_run, flows, options
from swarm_ui.experiment.demo.demo_run import open_run
from swarm_ui.experiment.settings import Settings, plain, restored
from swarm_ui.report.results import Results

SMOL = {
    "hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3,
    "num_hidden_layers": 30, "intermediate_size": 1536, "vocab_size": 49152,
    "tie_word_embeddings": True, "dtype": "bfloat16",
}  # fmt: skip


def test_a_language_model_is_trained_only_if_iterations_are_given() -> None:
    for words in (["--model", "m"], ["--model", "m", "--quick"]):
        assert not options.parse(words).settings.trains_model
    asked = options.parse(["--model", "m", "--adapters", "a", "--iterations", "2"]).settings
    assert asked.trains_model and asked.adapters == "a" and asked.shared_iterations == 2
    assert options.parse(["--iterations", "2"]).settings.iterations == 2
    device = options.parse(["--model", "m", "--iterations", "2", "--env", "androidworld"]).settings
    assert not device.trains_model


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--base-url", "http://x/v1", "--model", "m", "--iterations", "1"], "evaluated, not"),
        (["--base-url", "http://x/v1", "--model", "m", "--adapters", "a"], "leave --base-url out"),
        (["--adapters", "a"], "--adapters is for a language model"),
    ],
)
def test_what_cannot_be_trained(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        options.parse(words)


def test_an_evaluation_of_an_earlier_version_stays_one() -> None:
    before = plain(Settings(model="m"))
    assert restored(before, "run").trains_model
    del before["adapters"]
    assert not restored(before, "run").trains_model


def test_adapters_that_do_not_fit_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tiny_causal import save_llama

    base = save_llama(tmp_path / "base")
    for words in (["--adapters", str(tmp_path)], ["--adapters", "nowhere", "--iterations", "1"]):
        asked = options.parse(["--model", str(base), *words]).settings
        with pytest.raises(ConfigError, match="no adapters in"):
            demo_run.check_own_model(asked)


@pytest.mark.slow
async def test_a_team_of_a_language_model_is_trained_from_adapters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("peft")
    from tiny_causal import write_tiny_model

    from swarm_ui.nodes import CausalModel

    base = write_tiny_model(tmp_path / "base")
    model = CausalModel.from_pretrained(base, prompt_format="compact")
    model.add_adapter("start", rank=2)
    model.save_adapters(tmp_path / "adapters")
    request = options.parse(
        ["--model", str(base), "--adapters", str(tmp_path / "adapters" / "start"), "--iterations",
         "1", "--episodes", "4", "--episodes-test", "1", "--agents", "2", "--rounds", "1",
         "--tasks", "open-app", "--quick", "--out", str(tmp_path / "run")]
    )  # fmt: skip
    few = {"steps": 1, "shared_steps": 1, "rehearsal": 0.0}
    run = open_run(request._replace(settings=dataclasses.replace(request.settings, **few)))
    report = await flows.learn_with_model(run)
    assert report.is_file()
    arms = [arm.arm for arm in Results.load(run.directory.path).arms]
    assert arms == ["base-greedy", "base-team", "trained-greedy", "trained-team"]
    for name in ("agent_0", "agent_1"):
        about = json.loads((run.directory.adapters / name / "swarm_ui.json").read_text())
        assert about["prompt_format"] == "compact"
    assert "stage 2" in capsys.readouterr().out
