"""Adapters as folders on the command line: listed, imported, merged, and where training starts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from cli_world import LAMP, Shell, shell  # noqa: F401
from local_models import disturb, untrained
from safetensors.torch import load_file
from tiny_causal import save_llama

from swarm_ui.adapter_metadata import METADATA_FILE, read_metadata
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
def here(shell: Shell, models: Path) -> Path:  # noqa: F811
    shutil.copytree(models, shell.folder, dirs_exist_ok=True)
    return shell.folder


def equal(one: Path, other: Path) -> bool:
    first, second = load_file(one / WEIGHTS), load_file(other / WEIGHTS)
    return all(torch.equal(first[key], second[key]) for key in first.keys() | second.keys())


def test_an_adapter_is_listed_imported_and_used(shell: Shell, here: Path) -> None:  # noqa: F811
    listed = shell("models adapters saved --json").json["adapters"]
    assert [(row["name"], row["version"], row["rank"], row["alpha"]) for row in listed] == [
        ("final", 1, 2, 4)
    ]
    assert listed[0]["base_fingerprint"] and listed[0]["parameters"] > 0
    assert "final" in shell("models adapters saved/final").out

    done = shell("models import saved/final start --agents 2")
    assert done.code == 0 and "next: swarm-ui train phone --agents 2 --adapters start" in done.err
    assert equal(here / "start" / "agent_1", here / "saved" / "final")
    listed = shell("models adapters start --json").json["adapters"]
    assert [(row["name"], row["version"]) for row in listed] == [("agent_0", 0), ("agent_1", 0)]

    for adapters, names in (("start", ("agent_0@0", "agent_1@0")), ("saved/final", ("team@0",))):
        out = f"run-{names[0]}"
        run = f"eval {LAMP} light -n 1 --model agent --agents 2 --adapters {adapters} --out {out}"
        assert shell(run).code in (0, 1)
        trace = next((here / out / "traces").glob("*.jsonl")).read_text()
        assert all(f'"{name}"' in trace for name in names)


def test_training_starts_from_given_adapters(shell: Shell, here: Path) -> None:  # noqa: F811
    """Without a step of training, what is saved is what was given."""
    line = f"train {LAMP} --model agent --agents 2 --rounds 1 --iterations 0 --critic outcome"
    done = shell(f"{line} --adapters saved/final --out out")
    assert done.code == 0, done.err
    saved = sorted(p.parent.name for p in (here / "out" / "adapters").glob(f"*/{WEIGHTS}"))
    assert saved == ["agent_0", "agent_1"]
    assert all(equal(here / "out/adapters" / name, here / "saved" / "final") for name in saved)
    plan = shell(f"{line} --adapters saved/final --dry-run --json")
    assert plan.json["start"] == "saved/final"


def test_a_merged_model_is_a_model(shell: Shell, here: Path) -> None:  # noqa: F811
    done = shell("models merge agent saved/final merged --json")
    assert done.code == 0 and done.json["folder"] == "merged"
    assert shell(f"eval {LAMP} light -n 1 --model merged --out run").code in (0, 1)
    assert shell("models merge llama compact/final language").code == 0
    assert read_metadata(here / "language").prompt_format == "compact"
    assert shell("models merge agent saved/final merged").code == 2  # exists
    assert shell("models merge agent saved/final merged --force").code == 0


def test_a_plain_adapter_gets_what_its_folder_does_not_say(
    shell: Shell,  # noqa: F811
    here: Path,
) -> None:
    (here / "compact" / "final" / METADATA_FILE).unlink()
    line = "models import compact/final start --prompt-format compact --base llama --agents 1"
    assert shell(line).code == 0
    about = read_metadata(here / "start" / "agent_0")
    assert (about.prompt_format, about.base_model) == ("compact", "llama")
    assert about.base_fingerprint
    assert shell("models import start/agent_0 freed --any-base").code == 0
    assert read_metadata(here / "freed" / "agent_0").base_fingerprint == ""


@pytest.mark.parametrize("line, said", [
    ("models adapters nowhere", "no adapters in 'nowhere': expected a run of swarm-ui train"),
    ("models adapters agent", "no adapters in 'agent'"),
    ("models import agent out", "no adapters in 'agent'"),
    ("models import saved/final agent --force", "'agent' holds other files"),
    ("models import saved/final right.txt", "'right.txt' exists"),
    ("models import saved/final out --base other", "trained on another base"),
    ("models import saved/final out --base nowhere", "no model 'nowhere'"),
    ("models import saved/final out --prompt-format xml", "xml"),
    ("models import saved/final out --base agent --any-base", "give only one of them"),
    ("models import compact/final out --prompt-format json", "with the prompt format 'compact'"),
    ("models merge other saved/final out", "trained on another base, 'base-agent'"),
    ("models merge llama saved/final out", "does not fit this model"),
    ("models merge script:right.txt saved/final out", "it has no setting 'adapters'"),
    (f"eval {LAMP} light --model other --adapters saved/final", "trained on another base"),
    (f"eval {LAMP} light --model llama --adapters compact/final model.prompt_format=json",
     "'json' was requested"),
    (f"eval {LAMP} light --model agent --adapters agent", "no adapters in 'agent'"),
    (f"eval {LAMP} light --model agent --adapters saved --agents 2", "has final, but not agent_0"),
    (f"train {LAMP} --model agent --agents 2 --adapters saved", "has final, but not agent_0"),
])  # fmt: skip
def test_mistakes_are_one_line(shell: Shell, here: Path, line: str, said: str) -> None:  # noqa: F811
    done = shell(line)
    assert done.code == 2 and said in done.err
    assert done.err.count("\n") <= (2 if "--out" in line else 1), done.err
    assert not (here / "out" / "versions.json").exists()


def test_an_exported_adapter_is_half_as_large_and_names_no_path(
    shell: Shell,  # noqa: F811
    here: Path,
) -> None:
    done = shell("models export compact/final shared")
    assert done.code == 0 and "prompt format compact" in done.err
    before, after = (load_file(here / place / WEIGHTS) for place in ("compact/final", "shared"))
    assert {weight.dtype for weight in after.values()} == {torch.bfloat16}
    assert all(torch.equal(before[key].bfloat16(), after[key]) for key in before | after)
    assert str(here) not in (here / "shared" / "adapter_config.json").read_text()
    assert read_metadata(here / "shared") == read_metadata(here / "compact" / "final")
    done = shell(f"eval {LAMP} light --model llama --adapters shared")
    assert done.code in (0, 1) and "llama, trained" in done.out  # played; its weights are random


def test_the_adapters_in_this_package_have_names(shell: Shell, here: Path) -> None:  # noqa: F811
    listed = shell("models adapters --json").json["adapters"]
    names = ["smollm2-phone", "smollm2-critic"]
    assert [facts["name"] for facts in listed] == names
    for facts in listed:
        assert facts["prompt_format"] == "compact" and facts["bytes"] < 8_000_000
        assert facts["base_model"] == "smollm2" and facts["base_fingerprint"]
    assert shell("models list --json").json["models"][0]["adapters"] == names
    done = shell("models import smollm2-phone start --agents 2")
    assert done.code == 0 and "--model smollm2" in done.err
    assert equal(here / "start" / "agent_1", adapter_folder("smollm2-phone"))
    shell.folder.joinpath("smollm2-phone").symlink_to(here / "compact" / "final")
    assert adapter_folder(here / "smollm2-phone") == here / "smollm2-phone"


def test_an_adapter_of_another_base_is_refused_by_name(shell: Shell, here: Path) -> None:  # noqa: F811
    done = shell(f"eval {LAMP} light --model llama --adapters smollm2-phone")
    assert done.code == 2 and "does not fit this model" in done.err
