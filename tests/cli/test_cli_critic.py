"""``swarm-ui critic``: a tiny model learns to judge, and ``train`` uses what comes out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cli_world import LAMP, Shell

pytest.importorskip("peft")

from tiny_causal import write_tiny_model

from swarm_ui.environments.phone import TRAIN_SEEDS, VALIDATION_SEEDS, tasks
from swarm_ui.environments.phone.invented import UNSEEN, InventedPhone
from swarm_ui.experiment import critic_run
from swarm_ui.experiment.config import Config, Critic
from swarm_ui.experiment.critic_run import read_replies
from swarm_ui.experiment.mistakes import critic_mistakes
from swarm_ui.experiment.model_settings import Language
from swarm_ui.experiment.roles import open_critics

QUICK = "--episodes 1 --epochs 0.1"


def judged(folder: Path, name: str) -> list[tuple[str, int]]:
    labels, replies = read_replies(folder / "replies" / f"{name}.jsonl")
    assert replies and labels == "solver"
    return list(dict.fromkeys((reply.task, reply.seed) for reply in replies))


def test_a_critic_is_made_measured_and_used(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    base, out = write_tiny_model(shell.folder / "tiny"), shell.folder / "out"
    line = f"critic tiny phone invented out {QUICK} env.devices=1 --json"
    done = shell(line)
    assert done.code == 0, done.err
    assert done.json["critic"] == "out/final" and done.json["replies"] > 0
    figures = done.json["environments"]
    assert list(figures) == ["phone", "invented"]
    assert all(at["labels"] == "solver" and at["replies"] > 0 for at in figures.values())
    assert done.json["validation"]["replies"] == sum(at["replies"] for at in figures.values())
    assert done.json["training"]["environments"] == ["phone", "invented"]
    (phone,), (checked,) = judged(out, "1-phone-train"), judged(out, "1-phone-validation")
    assert phone[0] in tasks("train") and phone[1] in TRAIN_SEEDS
    assert checked[0] in tasks("train") and checked[1] in VALIDATION_SEEDS
    (invented,) = judged(out, "2-invented-train")
    assert invented[0] not in InventedPhone(devices=1, first=UNSEEN).tasks

    async def opened() -> str:
        config = Config(
            model=Language(name=str(base)), critic=Critic(kind="learned", folder=str(out / "final"))
        )
        assert not list(critic_mistakes(config))
        async with open_critics(config, object()) as roles:
            assert roles.critic is not None
            return roles.critic.name

    assert asyncio.run(opened()).startswith("learned critic (final, ")
    # What is finished is shown again, and nothing is played or trained.
    monkeypatch.setattr(critic_run, "_collect", None)
    monkeypatch.setattr(critic_run, "_train", None)
    again = shell(line)
    assert again.json["environments"] == figures
    other = shell(f"{line} --seed 3")
    assert other.code == 2 and "finetune.seed: " in other.err and "3 now" in other.err


@pytest.mark.slow
def test_an_interrupted_training_keeps_its_episodes(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tiny_model(shell.folder / "tiny")
    line = f"critic tiny phone out {QUICK} --json"

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(critic_run, "_train", stopped)
        cut = shell(line)
    assert cut.code == 130 and "what is finished is kept" in cut.json["resume"]
    files = {path: path.read_bytes() for path in (shell.folder / "out/replies").iterdir()}
    assert len(files) == 2
    done = shell(line)
    assert done.code == 0, done.err
    assert {path: path.read_bytes() for path in files} == files


def test_without_a_solver_the_outcome_is_the_label(shell: Shell) -> None:
    write_tiny_model(shell.folder / "tiny")
    few = "--agent script:mixed.txt --episodes 40 --epochs 0.1"
    done = shell(f"critic tiny {LAMP} out {few} --json")
    assert done.code == 0, done.err
    (figures,) = done.json["environments"].values()
    assert figures["labels"] == "outcome" and 0.0 < figures["right"] < 1.0
    shown = shell(f"critic tiny {LAMP} out {few}")
    assert "outcome" in shown.out and "right steps of failed episodes count as wrong" in shown.err
    assert "--critic learned critic.folder=out/final" in " ".join(shown.err.split())
