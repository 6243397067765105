"""The process behind :class:`AndroidWorldProcess`. It is run as a program and never imported.

It reads calls from its standard input and writes answers to its standard output, one JSON value on
each line. It ends when the input ends, so it never outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import BinaryIO

import msgspec

from swarm_ui.environments.androidworld.environment import AndroidWorldEnvironment
from swarm_ui.environments.androidworld.handset import connect, no_waiting
from swarm_ui.environments.androidworld.process import Answer, Call, Settings
from swarm_ui.errors import ConfigError, EnvironmentFault


def make(settings: Settings) -> AndroidWorldEnvironment:
    """The environment that the settings describe."""
    device = settings.device
    return AndroidWorldEnvironment(
        family=settings.family,
        pause=0.0 if device == "handset" else settings.pause,
        screenshots=settings.screenshots,
        budget=settings.budget,
        launch=None if device == "handset" else device.launch,
        connect=connect if device == "handset" else None,
    )


async def answer(env: AndroidWorldEnvironment | ConfigError, call: Call) -> Answer:
    """Answer a call. If there is no environment, the answer gives the reason."""
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
    env: AndroidWorldEnvironment | ConfigError, calls: BinaryIO, answers: BinaryIO
) -> None:
    """Answer calls until the input ends."""
    while line := calls.readline():
        call = msgspec.json.decode(line, type=Call)
        answers.write(msgspec.json.encode(await answer(env, call)) + b"\n")
        answers.flush()


def take_standard_streams() -> tuple[BinaryIO, BinaryIO]:
    """Private copies of the standard input and output.

    Upstream's code and its child processes then read an empty input and write to the log.
    """
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), 0)
    os.dup2(2, 1)
    return calls, answers


def main(arguments: list[str]) -> None:
    calls, answers = take_standard_streams()
    settings = msgspec.json.decode(arguments[0], type=Settings)
    with calls, answers, contextlib.ExitStack() as stack:
        env: AndroidWorldEnvironment | ConfigError
        try:
            if settings.device == "handset":
                stack.enter_context(no_waiting())
            env = make(settings)
        except ConfigError as error:  # such as: android_world is not installed
            env = error
        asyncio.run(serve(env, calls, answers))


if __name__ == "__main__":
    main(sys.argv[1:])
