"""The core templates never change: a shipped base agent and published results depend on them."""

from __future__ import annotations

import hashlib

import pytest
from phone_solutions import solution_bytes

from swarm_ui.environments.phone import PhoneEnvironment, jobs, parameter_words, tasks, vocabulary
from swarm_ui.environments.phone.tasks.template import TemplateSplit

DIGESTS: dict[TemplateSplit, str] = {
    "train": "d86634888479698703209fb9c37a2c1df23c84329d78b04d82cf634e8ac180aa",
    "validation": "7082744c8deb8e86cc0dc7b643fa69b0f4463b734c40a546d5e41a4e03a0742f",
    "new_templates": "9dd47131cedad877ee3b617085d52909b36a2b50f31040536462dcf4372d078f",
    "new_apps": "501c677e14031952ef6bfde6f614d81db5cde338f8b0e966b7c5747d13d5edc2",
}
"""Of every byte of every observation, action and reward along the reference solutions."""


@pytest.mark.parametrize("split", DIGESTS)
def test_core_episodes_are_what_they_were_when_the_results_were_published(
    split: TemplateSplit,
) -> None:
    phone, digest = PhoneEnvironment(), hashlib.sha256()
    for task in tasks(split):
        for seed in (0, 1, 2, 10_000_000, 20_000_000):
            for part in solution_bytes(phone, task, seed):
                digest.update(part)
    assert digest.hexdigest() == DIGESTS[split]


def test_core_words_and_jobs_are_what_they_were() -> None:
    drawn = [jobs(way, 50, 1) for way in ("parameters", "templates", "apps")]
    text = repr((vocabulary(), parameter_words(), drawn))
    assert (
        hashlib.sha256(text.encode()).hexdigest()
        == "da7bfb92ee5a3ef34d5fd655e28eed1a7b779049f0bc044643a4eef4d521daf6"
    )
