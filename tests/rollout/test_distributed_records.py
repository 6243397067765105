"""Resources and errors of workers, without a cluster."""

from __future__ import annotations

import socket
import sys
import time

import pytest

from swarm_ui import ConfigError, MissingExtra
from swarm_ui.rollout import ray_cluster, ray_rollouts


@pytest.mark.ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "ray://head:10001"])
def test_an_address_without_a_cluster_is_told_at_once(address: str) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'swarm-ui[ray]'")
    began = time.monotonic()
    with pytest.raises(ConfigError, match="HOST:"), ray_cluster(address):
        raise AssertionError
    assert time.monotonic() - began < 15


@pytest.mark.ray
def test_a_cluster_of_other_versions_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'swarm-ui[ray]'")

    def init(**_: object) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n  Python: 3.9.1\n")

    monkeypatch.setattr(ray, "init", init)
    with (
        socket.create_server(("127.0.0.1", 0)) as head,
        pytest.raises(ConfigError, match=r"Python: 3\.9\.1.*same versions") as told,
        ray_cluster(f"127.0.0.1:{head.getsockname()[1]}"),
    ):
        raise AssertionError
    assert "\n" not in str(told.value)


@pytest.mark.ray
def test_workers_need_a_cluster() -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'swarm-ui[ray]'")
    with pytest.raises(ConfigError, match="with ray_cluster"):
        ray_rollouts(lambda: None)  # type: ignore[arg-type, return-value]


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"swarm-ui\[ray\]"), ray_cluster():
        raise AssertionError
