"""A synthesis that was interrupted goes on: nothing finished is repeated, the budget is held."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from corpus_fakes import Ventriloquist, scripted_corpus
from small_world import Bare

from swarm_ui.budget import Budget
from swarm_ui.errors import BudgetExceeded, ModelError
from swarm_ui.nodes import ScriptedModel
from swarm_ui.optim.stage1 import HeldOut, Models, Totals, synthesize

ROOT = Path(__file__).resolve().parents[3]
NOTES = [("write", seed) for seed in range(4)]


async def ask(model: ScriptedModel, folder: Path, budget: Budget | None = None) -> Totals:
    models = Models(agent=model, adversary=model, critic=model)
    return await synthesize(Bare, models, NOTES, folder, held_out=HeldOut(), budget=budget)


def contents(folder: Path) -> bytes:
    return (folder / "walks.jsonl").read_bytes()


async def test_places_at_the_same_time_change_nothing(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "one", 6)
    await scripted_corpus(tmp_path / "three", 6, parallel=3)
    assert contents(tmp_path / "one") == contents(tmp_path / "three")


async def test_a_file_cut_anywhere_is_completed(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "whole", 4)
    whole, rng = contents(tmp_path / "whole"), random.Random(0)
    for trial in range(6):
        folder = tmp_path / f"cut{trial}"
        folder.mkdir()
        head = (tmp_path / "whole" / "corpus.json").read_bytes()
        (folder / "corpus.json").write_bytes(head)
        (folder / "walks.jsonl").write_bytes(whole[: rng.randrange(len(whole))])
        await scripted_corpus(folder, 4)
        assert contents(folder) == whole, trial


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

        with pytest.raises(ModelError):
            await ask(ScriptedModel(dying, name="ventriloquist"), tmp_path / "c")
    await ask(talker.model, tmp_path / "c")
    assert contents(tmp_path / "c") == contents(tmp_path / "calm")
    assert talker.calls == calm.calls  # every reply was asked for once
    again = Ventriloquist()
    done = await ask(again.model, tmp_path / "c", Budget(max_calls=0))
    assert again.calls == 0 and done.walks == 4


async def test_the_budget_holds_over_all_sessions(tmp_path: Path) -> None:
    whole = Ventriloquist()
    done = await ask(whole.model, tmp_path / "whole")
    assert whole.calls > 40
    model = Ventriloquist()
    for most in (10, 25, 25, 30):
        with pytest.raises(BudgetExceeded):
            await ask(model.model, tmp_path / "c", Budget(max_calls=most))
        assert model.calls == most
    finished = await ask(model.model, tmp_path / "c", Budget(max_calls=whole.calls))
    assert finished == done and model.calls == whole.calls
