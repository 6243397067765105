"""A synthesis that was interrupted goes on, and nothing finished is repeated."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from corpus_fakes import Ventriloquist, scripted_corpus
from small_world import Bare

from swarm_ui.errors import ModelError
from swarm_ui.model import Request
from swarm_ui.nodes import ScriptedModel
from swarm_ui.optim.stage1 import HeldOut, Models, Totals, synthesize

NOTES = [("write", seed) for seed in range(4)]


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


async def test_a_model_that_fails_again_and_again_loses_no_finished_walk(tmp_path: Path) -> None:
    def asked(model: ScriptedModel, folder: str) -> Coroutine[Any, Any, Totals]:
        models = Models(agent=model, adversary=model, critic=model)
        return synthesize(Bare, models, NOTES, tmp_path / folder, held_out=HeldOut())

    calm, talker = Ventriloquist(), Ventriloquist()
    done = await asked(calm.model, "calm")
    assert calm.calls > 40 and done.walks == 4
    for limit in (5, calm.calls // 2, calm.calls):  # of all calls, also those of walks that it lost

        def dying(request: Request, limit: int = limit) -> Any:
            if talker.calls >= limit:
                return ModelError("connection refused")
            return talker._reply(request)

        with pytest.raises(ModelError):
            await asked(ScriptedModel(dying, name="ventriloquist"), "c")
    assert 0 < len(contents(tmp_path / "c").splitlines()) < 4
    assert await asked(talker.model, "c") == done
    assert contents(tmp_path / "c") == contents(tmp_path / "calm")
    before = talker.calls
    assert await asked(talker.model, "c") == done and talker.calls == before
