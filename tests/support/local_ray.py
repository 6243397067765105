"""A Ray cluster on this machine, for the tests of a module."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from swarm_ui.rollout import ray_cluster

SUPPORT = Path(__file__).parent


@contextmanager
def local_ray(*, cpus: int = 8, **resources: float) -> Iterator[str]:
    """A local cluster with logical resources; the test is skipped where Ray is not installed."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'swarm-ui[ray]'")
    with (
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        ray_environment(Path(folder)),
        ray_cluster(cpus=cpus, resources=resources) as cluster,
    ):
        yield cluster


@contextmanager
def ray_environment(folder: Path) -> Iterator[None]:
    """The variables of a test cluster, whose files are in ``folder``, a short path."""
    paths = (str(SUPPORT.parents[1]), str(SUPPORT), os.environ.get("PYTHONPATH", ""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        patch.delenv("RAY_ADDRESS", raising=False)
        # Ray would kill workers where other programs fill the memory.
        patch.setenv("RAY_memory_monitor_refresh_ms", "0")
        # Its other processes have 30 s to start, which is not enough on a busy machine.
        patch.setenv("RAY_agent_register_timeout_ms", "120000")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield
