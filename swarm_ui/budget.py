"""Budgets for calls of language models: limits of calls, tokens and money that are not exceeded.

Before a call is sent, the most that it may use is reserved: :func:`most_tokens` of its prompt, and
the limit of its reply. So a budget is exceeded only if a server counts more than that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from swarm_ui.errors import BudgetExceeded, ConfigError
from swarm_ui.message import Usage

_ROUNDING = 1 + 1e-9
"""Sums of prices are rounded; a limit of money is not exceeded by that."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """The price of a model per million tokens, in any currency."""

    prompt: float
    completion: float

    def __post_init__(self) -> None:
        for name, value in (("prompt", self.prompt), ("completion", self.completion)):
            if not 0 <= value < math.inf:
                raise ConfigError(f"Price: {name} must be a number >= 0, got {value}")

    def of(self, usage: Usage) -> float:
        """The price of a call."""
        spent = self.prompt * usage.prompt_tokens + self.completion * usage.completion_tokens
        return spent / 1e6


class Hold(NamedTuple):
    """A reservation for a call in progress."""

    tokens: int
    cost: float
    price: Price | None


class Budget:
    """Limits on calls, tokens and money: :meth:`reserve` before a request is sent, :meth:`settle`
    when it has finished. Raises ``ConfigError`` for a limit below 0."""

    def __init__(
        self,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        """
        Args:
            max_calls: calls that may be sent, retries included; ``None``: no limit.
            max_tokens, max_cost: tokens and money that the calls may use together.
            prices: price of each model, by its served name.
        """
        limits = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost}
        for name, value in limits.items():
            if value is not None and not 0 <= value < math.inf:
                raise ConfigError(f"Budget: {name} must be a number >= 0 or None, got {value}")
        self.max_calls, self.max_tokens, self.max_cost = max_calls, max_tokens, max_cost
        self.prices = dict(prices or {})
        self.calls = 0
        """Calls sent, retries included."""
        self.tokens = 0
        """Tokens of the finished calls."""
        self.cost = 0.0
        """Cost of the finished calls."""
        self._held: list[Hold] = []
        self._runs: set[tuple[str, int]] = set()

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return not (self.max_calls is self.max_tokens is self.max_cost is None)

    def reserve(self, most: Usage, where: str, price: Price | None = None) -> Hold:
        """Reserve budget for a call that may use up to ``most``; pass the result to :meth:`settle`.
        Raises ``BudgetExceeded`` if the call could exceed the budget; then nothing is reserved."""
        hold = Hold(total(most), 0.0 if price is None else price.of(most), price)
        tokens = sum(held.tokens for held in self._held)
        money = sum(held.cost for held in self._held)
        most_money = None if self.max_cost is None else self.max_cost * _ROUNDING
        for name, limit, used, reserved, needed in (
            ("max_calls", self.max_calls, self.calls, 0, 1),
            ("max_tokens", self.max_tokens, self.tokens, tokens, hold.tokens),
            ("max_cost", most_money, self.cost, money, hold.cost),
        ):
            if limit is not None and used + reserved + needed > limit:
                raise BudgetExceeded(
                    f"{where}: the next call exceeds the budget, and was not sent: {name} is "
                    f"{limit:.9g}, {used:.9g} are used and {reserved:.9g} reserved for calls in "
                    f"progress, and it may need {needed:.9g}. Raise {name} to continue"
                )
        self.calls += 1
        self._held.append(hold)
        return hold

    def settle(self, hold: Hold, used: Usage | None) -> None:
        """Replace a reservation by the actual usage: the tokens that the call used; ``None`` if
        unknown: the whole reservation counts."""
        self._held.remove(hold)
        self.tokens += hold.tokens if used is None else total(used)
        self.cost += hold.cost if used is None or hold.price is None else hold.price.of(used)

    def count(self, used: Usage, calls: int = 1, price: Price | None = None) -> None:
        """Count calls that an earlier process sent."""
        self.calls += calls
        self.tokens += total(used)
        self.cost += 0.0 if price is None else price.of(used)

    def resume(self, run: tuple[str, int], made: Iterable[tuple[Usage, Price | None]]) -> None:
        """Count the calls that were made in a run before it was resumed, unless this budget knows
        the run (its name and seed): then it has counted them when they were made."""
        if run not in self._runs:
            self._runs.add(run)
            for used, price in made:
                self.count(used, price=price)

    def check_price(self, model: str) -> None:
        """Raise ``ConfigError`` if money is limited, and ``prices`` does not have the model."""
        if self.max_cost is not None and model not in self.prices:
            raise ConfigError(
                f"max_cost is set, but there is no price for '{model}' among "
                f"{', '.join(self.prices) or 'none'}. Add prices={{'{model}': Price(prompt=..., "
                "completion=...)} per million tokens"
            )


def most_tokens(text: str) -> int:
    """The most tokens of a text: its bytes in UTF-8, of which no tokenizer divides one."""
    return len(text.encode("utf-8", "surrogatepass"))


def guess_tokens(text: str) -> int:
    """An estimate of the tokens of a text: one for three ASCII characters, two for any other."""
    plain = len(text) if text.isascii() else sum(map(str.isascii, text))
    return (plain + 2) // 3 + 2 * (len(text) - plain)


def total(usage: Usage) -> int:
    """Prompt and completion tokens together."""
    return usage.prompt_tokens + usage.completion_tokens
