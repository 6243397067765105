"""Resets and steps with the checks that apply to every screen and step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Collection, Iterator
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from swarm_ui.action import ACTION_TYPES, Action
from swarm_ui.environment import Environment, Forgetful, Step
from swarm_ui.environments.contract_check.report import Finding
from swarm_ui.errors import EnvironmentFault
from swarm_ui.observation import Observation


class CannotGoOn(Exception):
    """A check cannot continue; the reason is already a finding."""


class Trial:
    """Collects the checks and the findings."""

    def __init__(self, without: Collection[str] = ()) -> None:
        self._without = frozenset(without)
        self.tried: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self.where = ""
        self._done = 0

    def expect(self, rule: str, holds: bool, problem: str) -> bool:
        """Count a check of ``rule``; record ``problem`` if it fails."""
        if rule in self._without:
            return holds
        self.tried[rule] += 1
        if not holds:
            self.find(rule, problem)
        return holds

    def find(self, rule: str, problem: str) -> None:
        finding = Finding(rule=rule, where=self.where, problem=problem)
        if rule not in self._without and finding not in self.findings:
            self.findings.append(finding)

    @contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """An exception in this block breaks the rule 'faults'."""
        self.expect("faults", True, "")
        try:
            yield
        except CannotGoOn:
            raise
        except EnvironmentFault as error:
            self.find("faults", f"the environment failed in {doing}: {error}")
            raise CannotGoOn from error
        except Exception as error:
            self.find("faults", f"{doing} raised {type(error).__name__}: {error}")
            raise CannotGoOn from error

    async def reset(self, env: Environment, task: str, seed: int) -> Observation:
        with self.guarded("reset"):
            screen = await env.reset(task=task, seed=seed)
        self._done = 0
        if not isinstance(screen, Observation):
            self.find("members", f"reset returned a {type(screen).__name__}, not an Observation")
            raise CannotGoOn
        self.screen(screen)
        self.expect("reset", not screen.history, "the history is not empty after reset")
        return screen

    async def step(self, env: Environment, action: Action, done: int | None = None) -> Step:
        """Perform a step and check it.

        ``done``: number of actions of the episode so far, if not all were performed here.
        """
        with self.guarded(f"step with {action}"):
            step = await env.step(action)
        if not isinstance(step, Step):
            self.find("members", f"step returned a {type(step).__name__}, not a Step")
            raise CannotGoOn
        self._done = done if done is not None else self._done + 1
        self.screen(step.observation)
        self._outcome(step, str(action))
        length = len(step.observation.history)
        fewer = isinstance(env, Forgetful) and length < self._done
        self.expect(
            "history",
            length == self._done or fewer,
            f"{length} actions in the history after {self._done}",
        )
        return step

    async def refuses(
        self, doing: Awaitable[object], error: type[Exception], rule: str, what: str
    ) -> None:
        """Check that a call raises ``error``."""
        try:
            await doing
        except error:
            self.expect(rule, True, "")
        except Exception as other:
            self.expect(rule, False, f"{what} raised {type(other).__name__}: {other}")
        else:
            self.expect(rule, False, f"{what} was done")

    def screen(self, screen: Observation) -> None:
        """Check the rules for every observation."""
        for position, element in enumerate(screen.elements):
            self.expect(
                "elements",
                element.index == position,
                f"the element at position {position} has index {element.index}",
            )
            left, top, right, bottom = element.bounds or (0, 0, 0, 0)
            self.expect(
                "elements",
                left <= right and top <= bottom,
                f"element {position} has bounds {element.bounds}",
            )
        self.expect("goal", bool(screen.goal), "the goal is empty")
        unknown = [kind for kind in screen.actions if kind not in ACTION_TYPES]
        self.expect("actions", not unknown, f"offers unknown kinds: {', '.join(unknown)}")
        twice = [kind for kind, n in Counter(screen.actions).items() if n > 1]
        self.expect("actions", not twice, f"offers twice: {', '.join(twice)}")
        self._round_trip(screen, "the observation")

    def _outcome(self, step: Step, act: str) -> None:
        self._round_trip(step, "the step")
        faulty = step.fault is not None
        self.expect(
            "faults",
            not faulty or (bool(step.fault) and not (step.terminated or step.truncated)),
            f"{act}: fault is {step.fault!r} with terminated={step.terminated}, "
            f"truncated={step.truncated}",
        )
        if faulty:
            self.find("faults", f"the environment failed in step with {act}: {step.fault}")
            raise CannotGoOn
        rewarded = step.terminated and 0.0 < step.reward <= 1.0
        self.expect(
            "reward",
            math.isfinite(step.reward) and (step.reward == 0.0 or rewarded),
            f"{act}: reward {step.reward} with terminated={step.terminated}, "
            f"truncated={step.truncated}",
        )
        self.expect(
            "ending", not (step.terminated and step.truncated), f"{act}: terminated and truncated"
        )

    def _round_trip(self, record: Observation | Step, name: str) -> None:
        try:
            back = msgspec.json.decode(msgspec.json.encode(record), type=type(record))
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            self.expect("json", False, f"{name} cannot be written and read: {error}")
            return
        self.expect("json", back == record, f"{name} changes in a JSON round trip")


def pictureless(step: Step) -> Step:
    """The step without its screenshot; pixels may differ."""
    return replace(step, observation=replace(step.observation, png=None))
