"""A synthesis that was killed goes on: the same bytes, nothing asked twice, the budget held."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from corpus_fakes import Ventriloquist, jobs, scripted_corpus
from small_world import Bare

from swarm_ui.budget import Budget, Price
from swarm_ui.errors import BudgetExceeded, ConfigError, ModelError, TraceError
from swarm_ui.nodes.models.scripted.scripted_model import ScriptedModel
from swarm_ui.optim.stage1 import HeldOut, Models, Totals, read_corpus, synthesize

ROOT = Path(__file__).resolve().parents[3]
NOTES = [("write", seed) for seed in range(4)]
PRODUCTS = ("samples.jsonl", "journal.jsonl")


def everyone(model: ScriptedModel) -> Models:
    return Models(agent=model, adversary=model, critic=model)


async def ask(model: ScriptedModel, folder: Path, **more: object) -> Totals:
    return await synthesize(Bare, everyone(model), NOTES, folder, held_out=HeldOut(), **more)  # type: ignore[arg-type]


def contents(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in PRODUCTS]


async def test_places_at_the_same_time_change_nothing(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "one", 6)
    await scripted_corpus(tmp_path / "three", 6, parallel=3)
    assert contents(tmp_path / "one") == contents(tmp_path / "three")


async def test_more_jobs_are_added_to_what_is_there(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "c", 3)
    before = contents(tmp_path / "c")
    walked: list[int] = []
    done = await scripted_corpus(tmp_path / "c", 5, report=lambda k, n, entry: walked.append(k))
    assert walked == [4, 5] and done.walks == 5
    assert all(a.startswith(b) for a, b in zip(contents(tmp_path / "c"), before, strict=True))


async def test_files_cut_anywhere_are_repaired(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "whole", 4)
    whole = contents(tmp_path / "whole")
    head = (tmp_path / "whole" / "corpus.json").read_bytes()
    rng = random.Random(0)
    for trial in range(12):
        folder = tmp_path / f"cut{trial}"
        folder.mkdir()
        (folder / "corpus.json").write_bytes(head)
        journal = whole[1][: rng.randrange(len(whole[1]))]
        (folder / "journal.jsonl").write_bytes(journal)
        # Samples are written before the line of the journal that counts them.
        counted = _counted(journal)
        cut = rng.randrange(counted, len(whole[0]) + 1)
        (folder / "samples.jsonl").write_bytes(whole[0][:cut])
        await scripted_corpus(folder, 4)
        assert contents(folder) == whole, trial


async def test_samples_that_were_lost_are_missed(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path, 2)
    (tmp_path / "samples.jsonl").unlink()
    with pytest.raises(TraceError, match="has 0 bytes of whole samples, and the journal counts"):
        list(read_corpus(tmp_path))


def _counted(journal: bytes) -> int:
    import json

    lines = journal.split(b"\n")[:-1]
    return int(json.loads(lines[-1])["end"]) if lines else 0


CHILD = """
import asyncio, sys, time
sys.path.insert(0, {here!r})
from pathlib import Path
from corpus_fakes import scripted_corpus
from swarm_ui.environments.phone import PhoneEnvironment
step = PhoneEnvironment.step
async def slow(self, action):
    time.sleep(0.01)
    return await step(self, action)
PhoneEnvironment.step = slow
print("ready", flush=True)
asyncio.run(scripted_corpus(Path(sys.argv[1]), 12))
"""


@pytest.mark.slow
async def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "whole", 12)
    rng = random.Random(1)
    kills = 0
    for _ in range(3):
        child = subprocess.Popen(
            [
                sys.executable,
                "-c",
                CHILD.format(here=str(ROOT / "tests" / "support")),
                str(tmp_path / "c"),
            ],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.05, 0.3))
        child.send_signal(signal.SIGKILL)
        kills += child.wait() == -signal.SIGKILL
        child.stdout.close()
    assert kills > 0
    await scripted_corpus(tmp_path / "c", 12)
    assert contents(tmp_path / "c") == contents(tmp_path / "whole")


async def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await scripted_corpus(tmp_path / "whole", 4)
    written, write = 0, os.write

    def full(file: int, data: bytes) -> int:
        nonlocal written
        written += 1
        if written > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, bytes(data)[: max(1, len(data) // 2)])  # half of it at once

    with monkeypatch.context() as patch:
        patch.setattr("swarm_ui.files.os.write", full)
        with pytest.raises(OSError, match="No space left"):
            await scripted_corpus(tmp_path / "c", 4)
    for name, whole in zip(PRODUCTS, contents(tmp_path / "whole"), strict=True):
        assert whole.startswith((tmp_path / "c" / name).read_bytes())
    await scripted_corpus(tmp_path / "c", 4)
    assert contents(tmp_path / "c") == contents(tmp_path / "whole")


async def test_samples_that_somebody_took_away_are_missed(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "c", 2)
    path = tmp_path / "c" / "samples.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(TraceError, match="another program changed it"):
        await scripted_corpus(tmp_path / "c", 3)
    with pytest.raises(TraceError, match="another program changed it"):
        list(read_corpus(tmp_path / "c"))


# -- calls ------------------------------------------------------------------------------------


async def test_an_endpoint_that_dies_loses_nothing(tmp_path: Path) -> None:
    calm = Ventriloquist()
    await ask(calm.model, tmp_path / "calm")
    talker = Ventriloquist(name="ventriloquist")
    for limit in range(1, calm.calls, 7):  # it dies again and again, each time a little later

        def dying(request, limit=limit):  # type: ignore[no-untyped-def]
            if talker.calls >= limit:
                return ModelError("connection refused")
            return talker._reply(request)

        with pytest.raises(ModelError, match="refused"):
            await ask(ScriptedModel(dying, name="ventriloquist"), tmp_path / "c")
    await ask(talker.model, tmp_path / "c")
    assert contents(tmp_path / "c") == contents(tmp_path / "calm")
    assert talker.calls == calm.calls  # every reply was asked for once


async def test_a_finished_corpus_asks_nothing(tmp_path: Path) -> None:
    await ask(Ventriloquist().model, tmp_path / "c")
    again = Ventriloquist()
    done = await ask(again.model, tmp_path / "c", budget=Budget(max_calls=0))
    assert again.calls == 0 and done.walks == 4


async def test_the_budget_holds_over_all_sessions(tmp_path: Path) -> None:
    whole = Ventriloquist()
    done = await ask(whole.model, tmp_path / "whole")
    assert whole.calls > 40
    model = Ventriloquist()
    for most in (10, 25, 25, 30):
        with pytest.raises(BudgetExceeded, match="calls of the budget are used up"):
            await ask(model.model, tmp_path / "c", budget=Budget(max_calls=most))
        assert model.calls == most
    finished = await ask(model.model, tmp_path / "c", budget=Budget(max_calls=whole.calls))
    assert finished == done and model.calls == whole.calls
    assert contents(tmp_path / "c") == contents(tmp_path / "whole")


async def test_a_call_cut_off_counts_as_all_it_might_have_used(tmp_path: Path) -> None:
    model = Ventriloquist()
    with pytest.raises(BudgetExceeded):
        await ask(model.model, tmp_path / "c", budget=Budget(max_calls=5))
    log = tmp_path / "c" / "calls.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # the last reply never came
    budget = Budget()
    await ask(model.model, tmp_path / "c", budget=budget)
    assert budget.calls == model.calls
    assert budget.tokens > _usage(log)


def _usage(log: Path) -> int:
    from swarm_ui.optim.stage1.corpus.call_log import spent

    used = spent(log)[1]
    return used.prompt_tokens + used.completion_tokens


async def test_a_budget_in_money_needs_prices(tmp_path: Path) -> None:
    model = Ventriloquist()
    with pytest.raises(ConfigError, match="needs the price"):
        await ask(model.model, tmp_path / "c", budget=Budget(max_cost=1.0))
    prices = {"ventriloquist": Price(prompt=1.0, completion=1.0)}
    budget = Budget(max_cost=0.005)
    with pytest.raises(BudgetExceeded, match="may cost"):
        await ask(model.model, tmp_path / "c", budget=budget, prices=prices)
    assert 0 < budget.cost <= 0.005


async def test_jobs_named_twice_are_walked_once(tmp_path: Path) -> None:
    done = await ask(Ventriloquist().model, tmp_path / "c")
    model = Ventriloquist()
    twice = await synthesize(
        Bare, everyone(model.model), [*NOTES, *NOTES], tmp_path / "d", held_out=HeldOut()
    )
    assert twice == done
    assert len(set(jobs(3))) == 3
