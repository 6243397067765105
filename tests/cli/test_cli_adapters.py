"""Adapters as folders on the command line: listed, and where training starts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from cli_world import LAMP, Shell
from local_models import disturb, untrained
from safetensors.torch import load_file
from tiny_causal import save_llama

from swarm_ui.nodes import CausalModel
from swarm_ui.nodes.models.pretrained.catalogue import adapter_folder

WEIGHTS = "adapter_model.safetensors"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two base agents, a language model, and an adapter of the first and of the last."""
    folder = tmp_path_factory.mktemp("models")
    for name, seed in (("agent", 0), ("other", 1)):
        untrained(seed).save(folder / name)
    model = untrained()
    model.add_adapter("final", rank=2, alpha=4)
    disturb(model, "final", 1)
    model.save_adapters(folder / "saved")
    save_llama(folder / "llama")
    language = CausalModel.named(str(folder / "llama"), prompt_format="compact")
    language.add_adapter("final", rank=2)
    disturb(language, "final", 1)
    language.save_adapters(folder / "compact")
    return folder


@pytest.fixture
def here(shell: Shell, models: Path) -> Path:
    shutil.copytree(models, shell.folder, dirs_exist_ok=True)
    return shell.folder


def equal(one: Path, other: Path) -> bool:
    first, second = load_file(one / WEIGHTS), load_file(other / WEIGHTS)
    return all(torch.equal(first[key], second[key]) for key in first.keys() | second.keys())


def test_an_adapter_is_used(shell: Shell, here: Path) -> None:
    run = f"eval {LAMP} light -n 1 --model agent --agents 2 --adapters saved/final --out run"
    assert shell(run).code in (0, 1)
    trace = next((here / "run" / "traces").glob("*.jsonl")).read_text()
    assert '"team@0"' in trace


def test_training_starts_from_given_adapters(shell: Shell, here: Path) -> None:
    """Without a step of training, what is saved is what was given."""
    line = f"train {LAMP} --model agent --agents 2 --rounds 1 --iterations 0 --critic outcome"
    done = shell(f"{line} --adapters saved/final --out out")
    assert done.code == 0, done.err
    saved = sorted(p.parent.name for p in (here / "out" / "adapters").glob(f"*/{WEIGHTS}"))
    assert saved == ["agent_0", "agent_1"]
    assert all(equal(here / "out/adapters" / name, here / "saved" / "final") for name in saved)
    plan = shell(f"{line} --adapters saved/final --dry-run --json")
    assert plan.json["start"] == "saved/final"


@pytest.mark.parametrize("line, said", [
    (f"eval {LAMP} light --model other --adapters saved/final", "trained on another base"),
    (f"eval {LAMP} light --model llama --adapters compact/final model.prompt_format=json",
     "'json' was requested"),
    (f"eval {LAMP} light --model agent --adapters agent", "no adapters in 'agent'"),
    (f"eval {LAMP} light --model agent --adapters saved --agents 2", "has final, but not agent_0"),
    (f"train {LAMP} --model agent --agents 2 --adapters saved", "has final, but not agent_0"),
])  # fmt: skip
def test_mistakes_are_one_line(shell: Shell, here: Path, line: str, said: str) -> None:
    done = shell(line)
    assert done.code == 2 and said in done.err
    assert done.err.count("\n") <= (2 if "--out" in line else 1), done.err
    assert not (here / "out" / "versions.json").exists()


def test_the_adapters_in_this_package_have_names(shell: Shell, here: Path) -> None:
    names = ["smollm2-phone", "smollm2-pages", "smollm2-critic"]
    assert shell("models list --json").json["models"][0]["adapters"] == names
    shell.folder.joinpath("smollm2-phone").symlink_to(here / "compact" / "final")
    assert adapter_folder(here / "smollm2-phone") == here / "smollm2-phone"


def test_an_adapter_of_another_base_is_refused_by_name(shell: Shell, here: Path) -> None:
    done = shell(f"eval {LAMP} light --model llama --adapters smollm2-phone")
    assert done.code == 2 and "does not fit this model" in done.err
