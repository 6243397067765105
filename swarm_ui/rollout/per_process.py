"""A value that each process makes once, such as a model."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class PerProcess(Generic[T]):
    """A function that is called once in each process; later calls return the same value there::

        base = PerProcess(partial(CausalModel.from_pretrained, folder))
        model = PublishedModel(learner, base)         # of the agents
        critic = PerProcessCritic(lambda: learned_critic(base(), critic_folder), "learned critic")

    Copies in other processes count as the same function: a process makes the value once, however
    often the function is sent to it. It is kept until the process ends. A call that fails keeps
    nothing.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        """``make``: is sent to the other processes."""
        self._make = make
        self._key = uuid.uuid4().hex

    def __call__(self) -> T:
        """The value in this process. Raises what the function raises."""
        if self._key not in _MADE:
            _MADE[self._key] = self._make()
        return cast(T, _MADE[self._key])


_MADE: dict[str, Any] = {}
"""Values by key. They belong to the process, because an object sent to it is a new object each
time."""
