"""A setting that would have no effect in a run is a mistake, which names the reason."""

from __future__ import annotations

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.config import Draft, read_draft
from swarm_ui.experiment.environments import spec_of
from swarm_ui.experiment.runs import check_config
from swarm_ui.experiment.runs.unused_settings import unused_environment_settings


def _draft(*settings: str) -> Draft:
    return read_draft(None, {}, settings)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("environment.devices=3", "devices = 3 has no effect in 'phone', only in invented"),
        ("environment.suite_seed=30", "only in androidworld, handset"),
        ("environment.data=x", "only in mind2web, autowebbench, web"),
        ("environment.name=phone-split environment.screenshots=true", "in 'phone-split'"),
        ("environment.name=handset environment.suite_seed=3 environment.seed=1", "--suite-seed"),
        ("model.max_calls=1", "[model] max_calls = 1 has no effect on 'base', which is not behind"),
        ("model.rate_limit=1", "not behind an endpoint"),
        ("model.device=cuda", "only on a language model in this process"),
        ("model.actor_name=x", "without a server"),
        ("model.vision=true", "which reads no pictures"),
        ("model.name=x model.url=http://h/v1 model.vision=true", "without screenshots"),
        ("team.rounds=3", "[team] rounds = 3 has no effect on one agent; give more with --agents"),
        ("team.views=window", "on one agent"),
        ("team.vote=probability", "on one agent"),
        ("team.agents=3 team.edges=chain team.density=0.9", "not random, but 'chain'"),
        ("team.agents=3 team.edges=none team.seed=4", "not random, but 'none'"),
        ("team.agents=1 team.temperature=0.5 team.temperatures=[0.1]", "--temperatures"),
        ("ray.workers=3", "[ray] workers = 3 has no effect without workers of a Ray cluster"),
        ("run.on=ray run.concurrency=3", "in workers of a Ray cluster; set ray.episodes"),
        ("run.on=ray ray.gpus_per_model=0.5", "where no process holds the model"),
        ("run.on=ray ray.shared_folder=true", "except in training"),
        ("run.on=ray ray.model_actors=2 model.name=x model.url=http://h/v1", "with an endpoint"),
    ],
)
def test_a_setting_without_effect_is_a_mistake(settings: str, told: str) -> None:
    with pytest.raises(ConfigError) as raised:
        check_config(_draft(*settings.split()))
    assert told in str(raised.value)
    assert str(raised.value).startswith("--set ")


def test_episodes_do_not_count_twice() -> None:
    with pytest.raises(ConfigError, match="--seed 3 is given twice"):
        check_config(Draft(), seeds=[3, 4, 3])
    with pytest.raises(ConfigError, match="--split apps is given twice"):
        check_config(Draft(), splits=["apps", "apps"])
    with pytest.raises(ConfigError, match="which are given"):
        recorded = _draft("environment.name=mind2web", "environment.data=x")
        check_config(recorded, seeds=[0, 1])


def test_what_one_of_several_environments_reads_has_an_effect() -> None:
    section = check_config(_draft("environment.name=invented", "environment.devices=3")).environment
    both = [spec_of("phone"), spec_of("invented")]
    assert not list(unused_environment_settings(section, both))
    assert list(unused_environment_settings(section, [spec_of("web")]))
