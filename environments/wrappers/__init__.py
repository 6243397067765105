"""Wrappers: environments that add one feature to another environment.

They nest in any order, and keep the snapshots and grades of the inner environment::

    env = Recorder(ActionFilter(PhoneEnvironment(), deny=(PAYMENT, DELETION)), "episodes.jsonl")
"""

from __future__ import annotations

from swarm_ui.environments.wrappers.action_filter import ActionFilter
from swarm_ui.environments.wrappers.action_rules import DELETION, PAYMENT, SENDING, Rule
from swarm_ui.environments.wrappers.confirm import Ask, Confirm, Question
from swarm_ui.environments.wrappers.fault_injection import FaultInjector
from swarm_ui.environments.wrappers.recorder import Recorder
from swarm_ui.environments.wrappers.wrapper import StepLimit, Wrapper

__all__ = [
    "DELETION",
    "PAYMENT",
    "SENDING",
    "ActionFilter",
    "Ask",
    "Confirm",
    "FaultInjector",
    "Question",
    "Recorder",
    "Rule",
    "StepLimit",
    "Wrapper",
]
