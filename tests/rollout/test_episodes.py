"""Episodes: outcomes, faults, retries, guidance, many at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from graph_fakes import FixedModel, HashModel, click, in_virtual_time, timeless

from swarm_ui import (
    Action,
    BudgetExceeded,
    CollabGraph,
    Completion,
    Element,
    Environment,
    EnvironmentFault,
    Episode,
    GraphPolicy,
    Intervention,
    ModelError,
    Observation,
    Request,
    Step,
    Trace,
    read_jsonl,
    rollout_many,
    write_jsonl,
)
from swarm_ui.nodes import AgentNode, MajorityVote
from swarm_ui.rollout import LocalWorker, Rollouts, rollout


class Counter:
    """Solved by as many clicks on element 0 as the seed says; three steps at most."""

    name = "counter"
    tasks = ("count",)

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self.closed = False
        self.done = self.steps = self.goal = 0

    async def reset(self, *, task: str, seed: int) -> Observation:
        self.done = self.steps = 0
        self.goal = seed
        return self.look()

    def look(self) -> Observation:
        elements = tuple(Element(index=i, role="button", text=f"{i}") for i in range(3))
        return Observation(goal="count", app=str(self.done), elements=elements)

    async def step(self, action: Action) -> Step:
        await asyncio.sleep(self.seconds)
        self.steps += 1
        self.done += action.index == 0
        solved = self.done == self.goal
        return Step(
            observation=self.look(),
            reward=float(solved),
            terminated=solved,
            truncated=not solved and self.steps == 3,
        )

    async def close(self) -> None:
        self.closed = True


def clicker(index: int = 0) -> GraphPolicy:
    return GraphPolicy(CollabGraph.solo(FixedModel({None: click(index)})), name="clicker")


def play(policy: object, seed: int = 2, environment: object = None, **options: object) -> Episode:
    world = environment or Counter()
    return in_virtual_time(rollout(world, policy, task="count", seed=seed, **options))  # type: ignore[arg-type]


def test_a_solved_and_an_unsolved_episode() -> None:
    solved = play(clicker())
    assert solved.success is True and solved.fault is None and solved.seconds == 2.0
    assert [(s.reward, s.terminated) for s in solved.steps] == [(0.0, False), (1.0, True)]
    assert (solved.environment, solved.task, solved.seed, solved.policy) == (
        "counter", "count", 2, "clicker"
    )  # fmt: skip
    failed = play(clicker(1))
    assert failed.success is False and len(failed.steps) == 3 and failed.steps[-1].truncated


def test_no_valid_proposal_is_a_lost_step_not_a_fault() -> None:
    episode = play(GraphPolicy(CollabGraph.solo(FixedModel({None: "hm"}))))
    assert episode.success is False
    assert [s.executed.action_type for s in episode.steps if s.executed] == ["wait"] * 3
    assert [s.trace.action for s in episode.steps] == [None] * 3


def test_every_step_has_a_seed_of_its_own_and_equal_episodes_are_equal() -> None:
    policy = GraphPolicy(CollabGraph.collaborative(model=HashModel(), views="shuffle"))
    first, second = play(policy, 3), play(policy, 3)
    assert len({step.trace.seed for step in first.steps}) == len(first.steps)
    assert [timeless(s.trace) for s in first.steps] == [timeless(s.trace) for s in second.steps]


class Faulty(Counter):
    """Breaks on its first ``faults`` episodes, all instances together."""

    def __init__(self, log: list[str], faults: int, how: str = "raise") -> None:
        super().__init__()
        self.log, self.faults, self.how = log, faults, how
        log.append("made")

    async def step(self, action: Action) -> Step:
        if self.log.count("fault") < self.faults:
            self.log.append("fault")
            if self.how == "raise":
                raise EnvironmentFault("the emulator is gone")
            return Step(observation=self.look(), fault="the emulator is gone")
        return await super().step(action)

    async def close(self) -> None:
        self.log.append("closed")


@pytest.mark.parametrize("how", ["raise", "value"])
def test_a_fault_masks_the_episode_and_is_never_a_zero(how: str) -> None:
    episode = play(clicker(), environment=Faulty([], 1, how))
    assert episode.success is None
    assert episode.fault is not None and "the emulator is gone" in str(episode.fault)


class Fading(HashModel):
    """Answers ``first`` requests; the endpoint of the others is down."""

    def __init__(self, first: int, says: str = click(0)) -> None:
        super().__init__()
        self.first, self.says = first, says

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        self.first -= 1
        if self.first < 0:
            raise ModelError("connection refused")
        return [Completion(text=self.says, prompt="p", model="m") for _ in requests]


def one_by_one(model: object) -> CollabGraph:
    agents = [AgentNode(name, model) for name in ("ada", "grace")]
    return CollabGraph(agents, [("ada", "grace")])


def two_rounds(model: object) -> CollabGraph:
    return CollabGraph.collaborative(2, 2, model=model, edges=[])


def nested_team(model: object) -> CollabGraph:
    return CollabGraph([CollabGraph([one_by_one(model), MajorityVote()], name="inner")])


@pytest.mark.parametrize(
    ("make", "answered"),
    [
        (CollabGraph.solo, 0), (one_by_one, 1), (two_rounds, 0), (two_rounds, 2), (nested_team, 0),
        (nested_team, 1),
    ],
)  # fmt: skip
def test_a_decision_that_is_missing_because_of_an_endpoint_is_a_fault(
    make: Callable[[object], CollabGraph], answered: int
) -> None:
    episode = play(GraphPolicy(make(Fading(answered))))
    assert episode.success is None and episode.steps == ()
    assert episode.fault is not None and episode.fault.kind == "model"
    assert "connection refused" in str(episode.fault)


@pytest.mark.parametrize("edges", [[], [("agent_1", "agent_0")]])
def test_an_invalid_reply_is_no_fault_although_another_agent_failed(
    edges: list[tuple[str, str]],
) -> None:
    team = CollabGraph.collaborative(2, 1, model=FixedModel({None: "hm"}), edges=edges)
    team = team.with_node(AgentNode("agent_1", Fading(0)))
    episode = play(GraphPolicy(team), max_steps=1)
    assert episode.fault is None and episode.success is False and len(episode.steps) == 1


def test_a_budget_ends_rollouts_with_what_there_is() -> None:
    class Purse(FixedModel):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            if len(self.requests) == 8:
                raise BudgetExceeded("8 calls")
            return await super().generate(requests)

    policy = GraphPolicy(CollabGraph.solo(Purse({None: click(0)})))
    jobs = [("count", 3)] * 5
    with pytest.raises(BudgetExceeded) as found:
        in_virtual_time(rollout_many(Counter, policy, jobs, concurrency=1))
    assert [(len(e.steps), e.success) for e in found.value.episodes] == [
        (3, True), (3, True), (2, None)
    ]  # fmt: skip
    assert str(found.value.episodes[-1].fault) == "BudgetExceeded: 8 calls"


def test_an_observer_sees_the_world_before_the_step_and_may_guide_it() -> None:
    seen: list[tuple[int, int]] = []

    async def observe(index: int, trace: Trace, environment: Environment) -> Intervention | None:
        assert isinstance(environment, Counter)
        seen.append((index, environment.done))
        if index == 0:
            return None
        return Intervention(credit=((0.5,),), execute=Action(action_type="click", index=0))

    episode = play(clicker(1), environment=Counter(), intervention=observe)
    assert seen == [(0, 0), (1, 0), (2, 1)]
    assert episode.success is True
    assert [s.credit for s in episode.steps] == [None, ((0.5,),), ((0.5,),)]
    assert [s.executed.index for s in episode.steps if s.executed] == [1, 0, 0]
    assert [s.trace.action.index for s in episode.steps if s.trace.action] == [1, 1, 1]


# -- many episodes ----------------------------------------------------------------------------

JOBS = [("count", 1 + k % 3) for k in range(12)]


def test_results_come_in_job_order_from_reused_environments() -> None:
    made: list[Counter] = []
    order: list[tuple[int, int]] = []

    def make() -> Counter:
        made.append(Counter(seconds=1.0 + len(made)))
        return made[-1]

    async def main() -> tuple[list[Episode], float]:
        episodes = await rollout_many(
            make, clicker(), JOBS, concurrency=3, progress=lambda n, of, e: order.append((n, of))
        )
        return episodes, asyncio.get_running_loop().time()

    episodes, seconds = in_virtual_time(main())
    assert [(e.task, e.seed) for e in episodes] == JOBS
    assert all(e.success for e in episodes)
    assert len(made) == 3 and all(world.closed for world in made)
    assert order == [(k + 1, 12) for k in range(12)]
    assert seconds < sum(e.seconds for e in episodes) / 2


def test_a_worker_opens_its_environments_once_until_it_is_closed() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[Callable[[], Environment]]:
        log.append("opened")
        yield Counter
        log.append("closed")

    async def main() -> None:
        async with Rollouts([LocalWorker(opened)]) as rollouts:
            for _ in range(2):
                episodes = await rollout_many(rollouts, clicker(), [("count", 2)] * 3)
                assert all(episode.success for episode in episodes)
            assert log == ["opened"]

    in_virtual_time(main())
    assert log == ["opened", "closed"]


def test_what_an_intervention_notes_is_in_the_episode_and_not_in_its_file(tmp_path: Path) -> None:
    async def watch(index: int, trace: Trace, environment: Environment) -> Intervention | None:
        return Intervention(note={"step": index}) if index else None

    graph = CollabGraph.solo(FixedModel({None: click(0)}))
    (episode,) = in_virtual_time(rollout_many(Counter, graph, [("count", 2)], intervention=watch))
    assert episode.notes == (None, {"step": 1})
    write_jsonl(tmp_path / "e.jsonl", [episode])
    assert read_jsonl(tmp_path / "e.jsonl") == [msgspec.structs.replace(episode, notes=())]


# -- policies ---------------------------------------------------------------------------------
