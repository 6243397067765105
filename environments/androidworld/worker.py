"""The other end of :class:`AndroidWorldProcess`: run as a program, never imported by it.

It reads calls from one pipe and writes answers to another, so that whatever upstream prints does
no harm. It ends with the pipe, hence with the process that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import BinaryIO

import msgspec

from swarm_ui.environments.androidworld.emulator import Emulator
from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment
from swarm_ui.environments.androidworld.process import Answer, Call, Settings, frame
from swarm_ui.errors import ConfigError, EnvironmentFault


def make(settings: Settings) -> AndroidWorldEnvironment:
    """The environment that the settings describe."""
    device = settings.device
    if isinstance(device, Emulator):
        return AndroidWorldEnvironment(
            family=settings.family,
            pause=settings.pause,
            screenshots=settings.screenshots,
            budget=settings.budget,
            launch=device.launch,
        )
    from swarm_ui.environments.androidworld.handset import connect

    return AndroidWorldEnvironment(
        family=settings.family,
        pause=0.0,
        screenshots=settings.screenshots,
        budget=settings.budget,
        connect=connect,
    )


async def answer(env: AndroidWorldEnvironment | ConfigError, call: Call) -> Answer:
    """Call what is asked; where there is no environment, say why."""
    if isinstance(env, ConfigError):
        return Answer() if call.do == "close" else Answer(refused=str(env))
    try:
        if call.do == "tasks":
            return Answer(tasks=tuple(env.tasks))
        if call.do == "reset":
            return Answer(observation=await env.reset(task=call.task, seed=call.seed))
        if call.do == "step" and call.action is not None:
            return Answer(step=await env.step(call.action))
        await env.close()
        return Answer()
    except ConfigError as error:
        return Answer(refused=str(error))
    except EnvironmentFault as error:
        return Answer(fault=str(error))


async def serve(
    env: AndroidWorldEnvironment | ConfigError, source: BinaryIO, target: BinaryIO
) -> None:
    """Answer calls until there are no more."""
    while len(head := source.read(4)) == 4:
        call = msgspec.json.decode(source.read(int.from_bytes(head, "big")), type=Call)
        target.write(frame(msgspec.json.encode(await answer(env, call))))
        target.flush()


def main(arguments: list[str]) -> None:
    source, target = (int(argument) for argument in arguments[:2])
    settings = msgspec.json.decode(arguments[2], type=Settings)
    with contextlib.ExitStack() as stack:
        calls = stack.enter_context(os.fdopen(source, "rb"))
        answers = stack.enter_context(os.fdopen(target, "wb"))
        env: AndroidWorldEnvironment | ConfigError
        try:
            if settings.device == "handset":
                from swarm_ui.environments.androidworld.handset import no_waiting

                stack.enter_context(no_waiting())
            env = make(settings)
        except ConfigError as error:  # android_world is missing: whoever asks is told
            env = error
        asyncio.run(serve(env, calls, answers))


if __name__ == "__main__":
    main(sys.argv[1:])
