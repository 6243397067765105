"""Preference losses against closed forms."""

from __future__ import annotations

import math

import pytest
import torch

from swarm_ui.optim.update.losses import dpo_loss, ipo_loss, margin, nll_loss

PC, PR = torch.tensor([-4.0, -2.0]), torch.tensor([-5.0, -1.0])
RC, RR = torch.tensor([-4.5, -2.0]), torch.tensor([-4.0, -2.0])
H = [0.5 - (-1.0), 0.0 - 1.0]  # margins by hand


def test_margin() -> None:
    assert margin(PC, PR, RC, RR).tolist() == pytest.approx(H)


def test_dpo_is_minus_log_sigmoid_of_the_margin() -> None:
    by_hand = [math.log1p(math.exp(-0.3 * h)) for h in H]
    assert dpo_loss(PC, PR, RC, RR, beta=0.3).item() == pytest.approx(sum(by_hand) / 2)
    weighted = dpo_loss(PC, PR, RC, RR, beta=0.3, weight=torch.tensor([3.0, 1.0]))
    assert weighted.item() == pytest.approx((3 * by_hand[0] + by_hand[1]) / 4)


def test_dpo_at_the_reference_is_log_two_with_gradient_half_beta() -> None:
    chosen = PC.clone().requires_grad_()
    loss = dpo_loss(chosen, PR, PC, PR, beta=0.2)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(2))
    assert chosen.grad is not None
    assert chosen.grad.tolist() == pytest.approx([-0.2 / 2 / 2] * 2)  # -beta/2, mean of two


def test_dpo_survives_huge_margins() -> None:
    far = torch.tensor([-1e4])
    loss = dpo_loss(far, torch.zeros(1), torch.zeros(1), torch.zeros(1), beta=1.0)
    assert loss.item() == pytest.approx(1e4)


def test_ipo_is_the_squared_distance_to_its_target() -> None:
    by_hand = [(h - 1 / (2 * 0.25)) ** 2 for h in H]
    assert ipo_loss(PC, PR, RC, RR, beta=0.25).item() == pytest.approx(sum(by_hand) / 2)


def test_nll_is_per_token_and_zero_weight_drops_a_reply() -> None:
    tokens = torch.tensor([2.0, 6.0])
    assert nll_loss(PC, tokens).item() == pytest.approx(6.0 / 8.0)
    one = nll_loss(PC, tokens, weight=torch.tensor([1.0, 0.0]))
    assert one.item() == pytest.approx(4.0 / 2.0)
