"""Wrappers: environments that add one feature to another environment.

They nest in any order, and keep the snapshots and grades of the inner environment::

    env = Confirm(ActionFilter(PhoneEnvironment(), deny=(PAYMENT, DELETION)), ask)
"""

from __future__ import annotations

from swarm_ui.environments.wrappers.rules import (
    DELETION,
    PAYMENT,
    SENDING,
    ActionFilter,
    Ask,
    Confirm,
    Question,
    Rule,
    Wrapper,
)

__all__ = [
    "DELETION",
    "PAYMENT",
    "SENDING",
    "ActionFilter",
    "Ask",
    "Confirm",
    "Question",
    "Rule",
    "Wrapper",
]
