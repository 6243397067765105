"""The rules of the environment contract, and the report of a check."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

SHOWN = 3
"""Findings of one rule that a report lists."""


class Rule(msgspec.Struct, frozen=True):
    """One rule of the contract."""

    says: str
    fix: str
    """How to fix an environment that breaks this rule."""


RULES: Mapping[str, Rule] = {
    "members": Rule(
        "it has a name, task names, reset, step and close",
        "give the class the members of swarm_ui.environment.Environment; task names are unique",
    ),
    "idle": Rule(
        "a step outside an episode raises EnvironmentFault",
        "remember whether an episode is running: none is before the first reset, after the step "
        "that ended it, or after close",
    ),
    "unknown-task": Rule(
        "reset refuses an unknown task with ConfigError",
        "look the task up first, and raise ConfigError with the known names",
    ),
    "faults": Rule(
        "a failure is an EnvironmentFault, or a step with 'fault' that does not end the episode",
        "catch other exceptions and raise EnvironmentFault from them; a step with a fault has a "
        "reason and is neither terminated nor truncated",
    ),
    "reset": Rule(
        "equal arguments of reset give equal screens, with an empty history",
        "use a Random(seed) made in reset for everything random, and clear the last episode",
    ),
    "determinism": Rule(
        "equal actions after equal resets give equal steps",
        "derive all randomness of an episode from the seed; use no clock, no global random "
        "generator, and no order of a set",
    ),
    "elements": Rule(
        "elements are numbered 0, 1, 2 … in their order, and bounds are left, top, right, bottom",
        "number elements last, when the tuple is complete; left <= right and top <= bottom",
    ),
    "goal": Rule("every observation has a goal", "put the goal text into every Observation"),
    "actions": Rule(
        "the kinds of action an observation offers are known, listed once, and can be tried",
        "list only names from swarm_ui.action.ACTION_TYPES; for an action without effect return "
        "a note",
    ),
    "json": Rule(
        "every observation and step is the same after a JSON round trip",
        "use str, int, float, bool and tuples of them; no NaN, no lone surrogates, no lists",
    ),
    "lost-step": Rule(
        "an action that makes no sense is a lost step with a note: nothing else happens",
        "check the action against the screen first; if it does not fit, change nothing and "
        "return the same screen with a note",
    ),
    "reward": Rule(
        "the reward is 1.0 on the step that ends a solved task, else 0.0; the step that terminates "
        "an unsolved task may have a share below 1",
        "reward only the step with terminated=True; shaping belongs in the note",
    ),
    "ending": Rule(
        "an episode is terminated or truncated, not both; doing nothing is truncated in the end",
        "count steps, lost ones too, and truncate at the budget unless the task ended just then",
    ),
    "history": Rule(
        "the history grows by one with every action, lost ones too",
        "append a Past for each action before anything else is decided; to list only some, define "
        "history_with (swarm_ui.environment.Forgetful)",
    ),
    "snapshot": Rule(
        "restore gives the snapshot's screen, and the same actions lead to the same steps again",
        "copy all state that a step reads or changes into the snapshot: budget, history, "
        "random generator",
    ),
    "expert": Rule(
        "the expert's actions solve the task within the budget",
        "compute expert() from the present state, with the indices of the screen just shown",
    ),
    "grade": Rule(
        "grade is 1.0 for the expert's action and 0.0 for nonsense or a false end, changes nothing",
        "grade on a copy of the state; declaring success is right only where the expert does it",
    ),
    "close": Rule(
        "close can be called twice, and ends the episode",
        "clear the state in close, so that the second call does nothing",
    ),
}
"""All rules, in the order of the report."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A violation of a rule, and where it was found."""

    rule: str
    where: str
    """Task and seed of the episode; empty: the finding does not depend on an episode."""
    problem: str
    """Description of the violation."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check; ``print(report)`` shows it as a table."""

    environment: str
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    tried: dict[str, int]
    """Rule -> number of checks; a rule without an entry does not apply."""
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of the broken rules."""
        return tuple(rule for rule in RULES if any(f.rule == rule for f in self.findings))

    def __str__(self) -> str:
        amount = f"{_count(len(self.tasks), 'task')}, {_count(len(self.seeds), 'seed')} each"
        lines = [f"contract of {self.environment}: {amount}"]
        for name, rule in RULES.items():
            lines += self._about(name, rule)
        lines.append(
            "the contract is kept"
            if self.ok
            else f"the contract is broken: {_count(len(self.broken), 'rule')}"
        )
        return "\n".join(lines)

    def _about(self, name: str, rule: Rule) -> list[str]:
        found = [finding for finding in self.findings if finding.rule == name]
        tried = self.tried.get(name, 0)
        if not found:
            return [f"  {'ok  ' if tried else '-   '}  {name:13} {tried:6} ×  {rule.says}"]
        lines = [f"  FAIL  {name:13} {tried:6} ×  {rule.says}"]
        for finding in found[:SHOWN]:
            place = f"{finding.where}: " if finding.where else ""
            lines.append(f"          {place}{finding.problem}")
        if len(found) > SHOWN:
            lines.append(f"          and {len(found) - SHOWN} more like these")
        return [*lines, f"          to fix: {rule.fix}"]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
