"""Environments on the base class: what it does for them."""

import pytest

from swarm_ui import Action, ConfigError, Element, EnvironmentFault, Observation
from swarm_ui.environments import Done, Episodic, Stateful, check_environment

HANDLE, NOWHERE = Action(action_type="click", index=0), Action(action_type="click", index=9)


class Door(Episodic):
    tasks = ("open", "keep shut")
    budget = 3
    ended = 0

    def begin(self, task, rng):
        self.acts = []
        self.labels = ["handle", str(rng.random())]
        return task

    def screen(self):
        return [*map(Element.button, self.labels), Element.line("a door"), Element.field("name")]

    def act(self, action, element):
        self.acts.append(element.label)
        if element.text == "handle":
            return Done(1.0, "it opens")
        return "nothing" if element.text != "a door" else None

    def end(self):
        self.ended += 1


class Slow(Episodic):
    """Everything waits, and the screen has more than elements."""

    tasks = ("wait",)

    async def begin(self, task, rng):
        self.budget, self.number = 4, rng.randrange(1000)
        return "wait"

    async def screen(self):
        line = Element.line(str(self.number))
        return Observation(goal="", app="slow", elements=(line,), actions=("wait",))

    async def act(self, action, element):
        assert element is None
        self.number += 1
        return Done(0.0, truncated=True) if self.number > 5000 else None


class Counter(Stateful):
    """Reaches three by clicks; its state is a number."""

    tasks = ("three",)
    budget = 9

    def begin(self, task, rng):
        self.state = 0
        return "click three times"

    def screen(self):
        return [Element.button("more"), Element.line(str(self.state))]

    def act(self, action, element):
        self.state += 1
        return Done(1.0) if self.state == 3 else None


@pytest.mark.parametrize("made", [Door, Slow, Counter])
def test_the_contract_is_kept(made):
    assert check_environment(made).ok


@pytest.mark.parametrize(
    "lost",
    [
        NOWHERE,
        Action(action_type="click", index=2),  # a line of text
        Action(action_type="input_text", index=0, text="x"),  # a button
        Action(action_type="click", x=1, y=1),
        Action(action_type="status", goal_status="complete"),
        Action(action_type="wait"),
    ],
    ids=str,
)
async def test_a_lost_step_is_noted_and_never_reaches_the_environment(lost):
    env = Door()
    await env.reset(task="open", seed=0)
    step = await env.step(lost)
    assert step.note and not step.ended and env.acts == []
    assert [past.action for past in step.observation.history] == [lost]


async def test_an_end_is_rewarded_and_the_last_step_released():
    env = Door()
    await env.reset(task="open", seed=0)
    step = await env.step(HANDLE)
    assert (step.reward, step.terminated, step.truncated) == (1.0, True, False)
    assert step.note == "it opens"
    assert env.ended == 1
    await env.close()
    assert env.ended == 1
    with pytest.raises(EnvironmentFault):
        await env.step(HANDLE)
    await env.reset(task="open", seed=0)
    await env.reset(task="open", seed=0)
    assert env.ended == 2, "the episode before is ended"
    await env.close()
    assert env.ended == 3


async def test_the_budget_truncates():
    env = Door()
    await env.reset(task="open", seed=0)
    steps = [await env.step(NOWHERE) for _ in range(3)]
    assert [step.truncated for step in steps] == [False, False, True]
    assert env.ended == 1


async def test_a_failure_ends_the_episode():
    class Broken(Door):
        def act(self, action, element):
            raise EnvironmentFault("out of order")

    env = Broken()
    await env.reset(task="open", seed=0)
    for _ in range(2):
        with pytest.raises(EnvironmentFault):
            await env.step(HANDLE)


async def test_an_unknown_task_is_named():
    with pytest.raises(ConfigError, match="did you mean 'open'"):
        await Door().reset(task="opem", seed=0)


def test_training_and_test_episodes_are_separate():
    train, test = Door.training_jobs(20, seed=1), Door.test_jobs(20, seed=1)
    assert train == Door.training_jobs(20, seed=1) != Door.training_jobs(20, seed=2)
    assert not {seed for _, seed in train} & {seed for _, seed in test}
    assert {task for task, _ in train} == set(Door.tasks)


def test_where_each_object_has_its_own_tasks_they_are_passed():
    class Rooms(Door):
        @property
        def tasks(self):
            return ("kitchen",)

    assert {task for task, _ in Rooms.test_jobs(3, tasks=Rooms().tasks)} == {"kitchen"}
    with pytest.raises(ConfigError):
        Rooms.test_jobs(3)
