"""``swarm-ui synthesize``, ``finetune`` and ``export`` of a corpus."""

from __future__ import annotations

import asyncio
import errno
import json
from pathlib import Path

import pytest
from cli_world import LAMP, Shell

from swarm_ui.environments.phone import PhoneEnvironment
from swarm_ui.environments.play.session import PlaySession
from swarm_ui.files import LineFile

FEW = "synthesize.questions=2 synthesize.instructions=2 synthesize.screens=2"


def small(shell: Shell, folder: str = "c", more: str = "") -> None:
    done = shell(f"synthesize phone -n 3 --prompt-format compact {FEW} {more} -o {folder} --json")
    assert done.code == 0, done.err


def samples(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "walks.jsonl").read_text().splitlines()
    return [sample for line in lines for sample in json.loads(line).get("samples", ())]


# -- synthesize -------------------------------------------------------------------------------


def test_a_corpus_by_command_and_its_continuation(shell: Shell) -> None:
    small(shell, "whole")
    done = shell(f"synthesize phone -n 2 --prompt-format compact {FEW} -o part --json")
    assert done.json["walks"] == 2
    small(shell, "part")
    assert samples(shell.folder / "part") == samples(shell.folder / "whole")
    made = samples(shell.folder / "whole")
    assert {sample["prompt_format"] for sample in made} == {"compact"}
    assert {sample["level"] for sample in made} == {1, 2, 3}
    other = shell(f"synthesize phone -n 3 {FEW} -o whole")
    assert other.code == 2 and "config.prompt_format: 'compact' then, 'json' now" in other.err


def test_levels_reasons_and_other_settings(shell: Shell) -> None:
    small(shell, "c", "synthesize.levels=[3] synthesize.reasons=true")
    made = samples(shell.folder / "c")
    assert {sample["level"] for sample in made} == {3}
    assert all("\n" in str(sample["response"]) for sample in made)
    done = shell("synthesize phone -o d synthesize.levels=[1,5] synthesize.foo=3")
    assert done.code == 2 and "synthesize.foo: no such setting" in done.err
    assert (
        "must be some of 1, 2 and 3" in shell("synthesize phone -o d synthesize.levels=[1,5]").err
    )


def test_what_a_person_played_becomes_a_corpus(shell: Shell) -> None:
    async def play(name: str, seed: int) -> None:
        phone = PhoneEnvironment()
        session = PlaySession(phone, shell.folder / name)
        await session.begin("contacts-add", seed)
        while not session.ended:
            await session.act(phone.expert())

    asyncio.run(play("mine.jsonl", 7))
    done = shell("synthesize demonstrations env.data=mine.jsonl synthesize.levels=[3] -o c --json")
    assert done.code == 0 and done.json["samples"]["level 3"] >= 3
    asyncio.run(play("test.jsonl", 20_000_007))
    leak = shell("synthesize demonstrations env.data=test.jsonl -o d")
    assert leak.code == 2 and "seed 20000007 is held out" in leak.err
    assert not (shell.folder / "d").exists()


def test_a_full_disk_keeps_the_finished_walks(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, walks = LineFile.append, []

    def full(self: LineFile, line: bytes) -> None:
        walks.append(line)
        if len(walks) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(self, line)

    with monkeypatch.context() as patch:
        patch.setattr(LineFile, "append", full)
        done = shell(f"synthesize phone -n 3 --prompt-format compact {FEW} -o c")
    assert done.code == 2
    assert "cannot write 'c': No space left on device; the finished walks are kept" in done.err
    small(shell)
    small(shell, "whole")
    assert samples(shell.folder / "c") == samples(shell.folder / "whole")


def test_a_model_plays_all_roles(shell: Shell) -> None:
    done = shell(f"synthesize {LAMP} -n 2 --model script:right.txt -o c --json")
    assert done.code == 0, done.err
    assert done.json["successes"] == 2


# -- finetune and export ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_model_is_fine_tuned_by_command(shell: Shell) -> None:
    pytest.importorskip("trl")
    from corpus_fakes import tiny_llama

    tiny_llama(shell.folder / "tiny")
    small(shell)
    quick = "finetune.max_steps=1 finetune.batch_size=2 finetune.accumulate=1"
    done = shell(f"finetune tiny c out {quick} --json")
    assert done.code == 0, done.err
    assert done.json["final"] == "out/final" and len(done.json["stages"]) == 4
    about = json.loads((shell.folder / "out" / "final" / "swarm_ui.json").read_text())
    assert about["prompt_format"] == "compact" and about["base_model"] == "tiny"
    again = shell(f"finetune tiny c out {quick} finetune.seed=6")
    assert again.code == 2 and "config.seed: 0 then," in again.err
