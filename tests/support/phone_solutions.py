"""The bytes of the reference solutions of a phone, whose digest tests compare with a stored one."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from swarm_ui.environments.phone import PhoneEnvironment


def solution_bytes(phone: PhoneEnvironment, task: str, seed: int) -> Iterator[bytes]:
    """Every observation, action and reward from the first screen to the end of the episode."""
    encoder = msgspec.json.Encoder()
    yield encoder.encode(phone.begin(task, seed))
    while True:
        action = phone.expert()
        step = phone.act(action)
        yield action.json().encode() + encoder.encode(step)
        if step.ended:
            return
