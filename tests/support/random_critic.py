"""A learned critic of random weights: its scores mean nothing, and are the same in every run."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import torch
from local_models import disturb

from swarm_ui.nodes import CausalModel
from swarm_ui.optim.credit.learned import CriticCard, write_card


def save_random_critic(base: Path, folder: Path, *, seed: int = 8) -> Path:
    """A critic for the model in ``base``, as a training writes it; returns the folder."""
    model = CausalModel.from_pretrained(base)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.add_adapter("critic", rank=2)
    disturb(model, "critic", seed=seed, size=2.0)
    with tempfile.TemporaryDirectory() as beside:
        model.save_adapters(Path(beside))
        shutil.move(Path(beside) / "critic", folder)
    write_card(CriticCard(), folder)
    return folder
