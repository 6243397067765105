"""Updates by several processes give the weights of one process."""

from __future__ import annotations

import random
import signal
import sys
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from learning_fakes import TinyModel, click, precise, screen
from process_group import in_processes, started
from safetensors.torch import load_file, save_file
from torch import Tensor

from swarm_ui.errors import LearningError
from swarm_ui.model import Decision
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.preferences.advantages import ScoredReply
from swarm_ui.optim.preferences.pairs import PreferencePair
from swarm_ui.optim.update.adapter_trainer import Method, UpdateConfig, UpdateStats
from swarm_ui.optim.update.distributed.learners import Learners, NewAdapter, follow
from swarm_ui.optim.update.distributed.processes import LostProcess, Processes
from swarm_ui.optim.update.distributed.spread import Spread
from swarm_ui.optim.update.team_update import Examples, update_team

WORDS = ["Save", "Back", "Help", "Open", "Send", "Find"]
AGENTS = {f"agent_{k}": f"agent_{k}" for k in range(3)}
BATCHES = TeamConfig(
    shared_iterations=0, lr_decay=0.0, seed=4, spread="batches", rank=4, alpha=4,
    update=UpdateConfig(method="dpo", steps=4, batch_size=5, lr=5e-2, warmup=1, max_grad_norm=0.05),
)  # fmt: skip


def decision(k: int) -> Decision:
    """Prompts of very different lengths."""
    return Decision(observation=screen(["x"], goal=f"goal-{k % 6} " * (1 + 7 * k % 23)))


def examples(method: Method, count: int = 13) -> Examples:
    """Of different weights; every third pair has no rejected side."""
    nodes = [f"agent_{k % 3}" for k in range(count)]
    if method == "pg":
        return [
            ScoredReply(node=nodes[k], decision=decision(k), reply=click(k % 6, WORDS[k % 6]),
                        advantage=(-1.0) ** k * (1 + k % 3))
            for k in range(count)
        ]  # fmt: skip
    pairs = [
        PreferencePair(
            node=nodes[k], decision=decision(k), chosen=click(k % 6, WORDS[k % 6]),
            rejected=click((k + 1) % 6, WORDS[(k + 1) % 6]), weight=0.25 * (1 + k % 4),
        )
        for k in range(count)
    ]  # fmt: skip
    bare = [msgspec.structs.replace(p, rejected=None) for p in pairs]
    return [bare[k] if k % 3 == 0 else pairs[k] for k in range(count)]


def weights(model: TinyModel) -> dict[str, Tensor]:
    return {
        f"{name}.{k}": p.detach().clone()
        for name in model.adapters
        for k, p in enumerate(model.adapter_parameters(name))
    }


def update(
    model: TinyModel, config: TeamConfig, learners: Learners | None = None, iteration: int = 0
) -> list[UpdateStats]:
    return update_team(
        model, examples(config.update.method), AGENTS, config, iteration, learners=learners
    )


def alone(config: TeamConfig) -> tuple[TinyModel, list[UpdateStats]]:
    model = precise(tuple(AGENTS))
    return model, update(model, config)


def first(folder: Path, config: TeamConfig) -> Callable[[Processes], None]:
    """The first process: makes two updates, of which the second continues the first."""

    def work(processes: Processes) -> None:
        learners, model = Learners(processes), precise(tuple(AGENTS))
        learners.begin(b"tiny")
        learners.ready(model)
        stats = update(model, config, learners)
        (folder / "stats.json").write_bytes(msgspec.json.encode(stats))
        (folder / "versions.json").write_bytes(msgspec.json.encode(model.versions))
        save_file(weights(model), folder / "once.safetensors")
        update(model, config, learners, iteration=1)
        save_file(weights(model), folder / "twice.safetensors")
        assert learners.cpu_seconds > 0
        learners.close()

    return work


def other(folder: Path) -> Callable[[Processes], None]:
    def work(processes: Processes) -> None:
        made: list[TinyModel] = []

        def load(description: bytes) -> TinyModel:
            assert description == b"tiny"
            made.append(precise(("agent_1",)))  # the rest is added on demand
            return made[0]

        follow(processes, load)
        save_file(weights(made[0]), folder / f"rank-{processes.rank}.safetensors")

    return work


def distance(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> float:
    assert a.keys() == b.keys()
    return max((a[key] - b[key]).abs().max().item() for key in a)


def together(folder: Path, config: TeamConfig, processes: int) -> list[UpdateStats]:
    folder.mkdir(parents=True, exist_ok=True)
    in_processes([first(folder, config), *[other(folder)] * (processes - 1)], folder)
    ends = load_file(folder / "twice.safetensors")
    for rank in range(1, processes):
        # After the last update all processes have the weights of the first one.
        assert distance(load_file(folder / f"rank-{rank}.safetensors"), ends) == 0.0
    return msgspec.json.decode((folder / "stats.json").read_bytes(), type=list[UpdateStats])


@pytest.mark.parametrize(
    ("method", "spread", "processes"),
    [
        pytest.param(
            method,
            spread,
            processes,
            # By default every method is checked with one spread, and every spread with one method.
            marks=() if method == "dpo" or spread == "batches" else pytest.mark.slow,
        )
        for method in ("dpo", "ipo", "rft", "pg")
        for spread, processes in (("batches", 2), ("adapters", 2), ("auto", 3))
    ],
)
def test_several_processes_are_one(
    tmp_path: Path, method: Method, spread: Spread, processes: int
) -> None:
    """Three agents; batches of five examples, so that the shares are unequal."""
    config = replace(BATCHES, spread=spread, update=replace(BATCHES.update, method=method))
    model, expected = alone(config)
    start = weights(precise(tuple(AGENTS)))
    found = together(tmp_path, config, processes)
    once = load_file(tmp_path / "once.safetensors")
    tolerance = 1e-8 if spread == "batches" else 0.0  # without communication nothing is rounded
    assert distance(once, weights(model)) <= tolerance < 1e-2 < distance(start, weights(model))
    versions = msgspec.json.decode((tmp_path / "versions.json").read_bytes())
    assert versions == model.versions == dict.fromkeys(AGENTS, 1)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.adapter, ours.pairs, ours.steps) == (theirs.adapter, theirs.pairs, 4)
        assert ours.loss == pytest.approx(theirs.loss, abs=1e-4)
        assert ours.accuracy == pytest.approx(theirs.accuracy)
    trained_by = [each.process for each in found]
    if spread == "batches":
        assert trained_by == [None] * 3
    else:
        assert sorted(set(trained_by), key=str) == list(range(processes))
    update(model, config, iteration=1)
    assert distance(load_file(tmp_path / "twice.safetensors"), weights(model)) <= 10 * tolerance


@pytest.mark.parametrize(
    "batch_size", [1, *(pytest.param(size, marks=pytest.mark.slow) for size in (4, 7))]
)
def test_a_share_of_a_batch_may_be_empty(tmp_path: Path, batch_size: int) -> None:
    settings = replace(BATCHES.update, batch_size=batch_size, micro_batch_tokens=100)
    config = replace(BATCHES, update=settings, shared_iterations=1, shared_steps=4)
    model, _ = alone(config)
    (found,) = together(tmp_path, config, 3)
    assert found.steps == 4
    assert distance(load_file(tmp_path / "once.safetensors"), weights(model)) <= 1e-8


def test_no_thread_of_the_group_outlives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would abort the interpreter at the end, if it released a tensor just then."""
    monkeypatch.delitem(sys.modules, "torch.distributed.nn.functional", raising=False)

    def work(processes: Processes) -> None:
        import torch.distributed.nn.functional  # its default arguments are the group of its import

        group = weakref.ref(torch.distributed.group.WORLD)
        processes.gather(b"")
        processes.leave()
        assert group() is None

    in_processes([work, work], tmp_path)


# -- failures ---------------------------------------------------------------------------------


def test_the_error_of_a_process_is_that_of_the_run(tmp_path: Path) -> None:
    """The last process cannot train its adapter; nobody waits for ever."""

    def leading(processes: Processes) -> None:
        learners = Learners(processes)
        learners.begin(b"")
        model = TinyModel(tuple(AGENTS))
        learners.ready(model)
        before = weights(model)
        with pytest.raises(LearningError, match=r"process 3 of 3: adapter 'agent_\d', step 1"):
            update(model, replace(BATCHES, spread="adapters"), learners)
        assert distance(before, weights(model)) < 1.0
        assert update(model, replace(BATCHES, spread="batches"), learners)[0].steps == 4
        learners.close()

    def following(processes: Processes) -> None:
        broken = processes.rank == 2

        def load(description: bytes) -> TinyModel:
            model = TinyModel(tuple(AGENTS))
            forward = model.forward_logprobs

            def infinite(*given: Tensor) -> tuple[Tensor, Tensor]:
                nonlocal broken
                sums, tokens = forward(*given)
                if not (broken and sums.requires_grad):
                    return sums, tokens
                broken = False
                return sums * float("nan"), tokens

            model.forward_logprobs = infinite  # type: ignore[method-assign]
            return model

        follow(processes, load)

    in_processes([leading, following, following], tmp_path)


def test_a_model_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    def leading(processes: Processes) -> None:
        learners = Learners(processes)
        learners.begin(b"")
        with pytest.raises(LearningError, match="process 2 of 2: OSError: no such disk"):
            learners.ready(TinyModel())
        learners.close()

    def following(processes: Processes) -> None:
        def load(description: bytes) -> TinyModel:
            raise OSError("no such disk")

        follow(processes, load)

    in_processes([leading, following], tmp_path)


def test_adapters_of_another_shape_are_an_error(tmp_path: Path) -> None:
    def leading(processes: Processes) -> None:
        learners, model = Learners(processes), TinyModel(("agent_0",))
        learners.begin(b"")
        learners.ready(model)
        with pytest.raises(LearningError, match=r"2 of 2: adapter 'agent_0' has \d+ weights, in"):
            learners.update(model, [task(model)], filled(), NewAdapter(rank=4, alpha=4))
        learners.close()

    def following(processes: Processes) -> None:
        def load(description: bytes) -> TinyModel:
            model = TinyModel()
            model.add_adapter("agent_0", rank=8)
            return model

        follow(processes, load)

    in_processes([leading, following], tmp_path)


def test_a_start_that_is_given_up_ends_the_other_processes(tmp_path: Path) -> None:
    """As when the first process finds a mistake in the settings, or cannot load its model."""

    def leading(processes: Processes) -> None:
        learners = Learners(processes)
        learners.begin(b"")
        learners.close()

    in_processes([leading, lambda processes: follow(processes, lambda _: TinyModel())], tmp_path)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_is_an_error_in_the_others(tmp_path: Path, victim: int) -> None:
    """In the middle of an update, or while the others wait for one."""
    ready = tmp_path / "ready"

    def leading(processes: Processes) -> None:
        learners = Learners(processes)
        learners.begin(b"")
        model = TinyModel(tuple(AGENTS))
        learners.ready(model)
        update(model, BATCHES, learners)
        ready.touch()
        many = replace(BATCHES, update=replace(BATCHES.update, steps=3_000))
        with pytest.raises(LostProcess, match="process 1 of 2: the connection to the other"):
            update(model, many, learners)
        learners.close()

    def following(processes: Processes) -> None:
        with pytest.raises(LostProcess, match="process 2 of 2: the connection to the other"):
            follow(processes, lambda _: TinyModel())

    children = started([leading, following], tmp_path)
    while not ready.exists():
        time.sleep(0.05)
    assert children[victim].kill() == -signal.SIGKILL
    assert children[1 - victim].wait() == 0, (tmp_path / f"stderr-{1 - victim}").read_text()


def filled() -> UpdateConfig:
    return replace(BATCHES.update, steps=1)


def task(model: TinyModel):  # type: ignore[no-untyped-def]
    from swarm_ui.optim.update.adapter_task import adapter_task

    return adapter_task(model, filled(), "agent_0", examples("dpo")[:2], random.Random(0))


def test_shares_are_all_rows_once() -> None:
    for size in (1, 2, 3, 5):
        group = object.__new__(Processes)
        group.size = size
        shares = [group.share(7, rank) for rank in range(size)]
        assert sorted(k for share in shares for k in share) == list(range(7))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_adapters_that_share_their_start_and_others_are_trained_in_one_iteration(
    tmp_path: Path,
) -> None:
    config = replace(BATCHES, shared_iterations=1, shared_steps=4)
    sharing = ("agent_0", "agent_2")

    def updated(model: TinyModel, learners: Learners | None = None) -> list[str]:
        stats = update_team(
            model, examples("dpo"), AGENTS, config, 0, sharing=sharing, learners=learners
        )
        return [each.adapter for each in stats]

    def leading(processes: Processes) -> None:
        learners, model = Learners(processes), precise(tuple(AGENTS))
        learners.begin(b"tiny")
        learners.ready(model)
        assert updated(model, learners) == ["agent_0", "agent_1"]
        save_file(weights(model), tmp_path / "together.safetensors")
        learners.close()

    in_processes([leading, other(tmp_path)], tmp_path)
    model = precise(tuple(AGENTS))
    assert updated(model) == ["agent_0", "agent_1"]
    assert distance(load_file(tmp_path / "together.safetensors"), weights(model)) <= 1e-8
