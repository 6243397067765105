"""The type of the shell's programs."""

from __future__ import annotations

from collections.abc import Callable

from swarm_ui.environments.androidworld.handset.handset import Handset

Program = Callable[[Handset, list[str], bytes], bytes | str]
"""Maps the handset, the arguments and the standard input to the output.

It raises ``AdbFailure`` if the command fails, and ``UnsupportedArguments`` for arguments that it
does not support.
"""
