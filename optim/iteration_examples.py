"""The examples that the adapters learn from in one iteration."""

from __future__ import annotations

import random

from msgspec.structs import replace

from swarm_ui.node import derive
from swarm_ui.optim.config import TeamConfig
from swarm_ui.optim.preferences.advantages import ScoredReply, scored_replies
from swarm_ui.optim.preferences.pairs import PreferencePair, make_pairs
from swarm_ui.optim.rollout_schedule import PlayedRollouts


def examples_of(
    iteration: int, played: PlayedRollouts, config: TeamConfig
) -> list[PreferencePair] | list[ScoredReply]:
    """Pairs of the episodes of an iteration, or scored replies for ``update.method="pg"``.

    Each example records how many updates older the weights were that played its episode.
    """
    behind = played.staleness
    if config.update.method == "pg":
        episodes = [episode for rollout in played.rollouts for episode in rollout.episodes]
        replies = scored_replies(episodes, by=config.advantage)
        return [replace(reply, staleness=behind) for reply in replies] if behind else replies
    rng = random.Random(derive(config.seed, "pairs", iteration))
    pairs = [
        pair
        for r in played.rollouts
        for pair in make_pairs(
            r.episodes, rng, config=config.pairs, negatives=r.supervisor.negatives
        )
    ]
    return [replace(pair, staleness=behind) for pair in pairs] if behind else pairs
