"""What may be spent on calls to a language model: an upper bound that is never crossed."""

from __future__ import annotations

from swarm_ui.errors import BudgetExceeded, ConfigError


class Budget:
    """Calls and tokens allowed. Reserve before a call is sent, settle when it is over."""

    def __init__(self, max_calls: int | None = None, max_tokens: int | None = None) -> None:
        """``None`` means no limit."""
        for name, value in (("max_calls", max_calls), ("max_tokens", max_tokens)):
            if value is not None and value < 0:
                raise ConfigError(f"Budget: {name} must be >= 0 or None, got {value}")
        self.max_calls = max_calls
        self.max_tokens = max_tokens
        self.calls = 0
        """Calls sent, retries included."""
        self.tokens = 0
        """Tokens of the calls that are over."""
        self._reserved = 0

    def reserve(self, tokens: int, where: str) -> None:
        """Count a call that may use up to ``tokens``.

        Raises:
            BudgetExceeded: it could cross the budget; nothing is counted.
        """
        if self.max_calls is not None and self.calls + 1 > self.max_calls:
            raise BudgetExceeded(
                f"{where}: all {self.max_calls} calls of the budget are used up; "
                "nothing was sent. Raise max_calls to go on"
            )
        wanted = self.tokens + self._reserved + tokens
        if self.max_tokens is not None and wanted > self.max_tokens:
            raise BudgetExceeded(
                f"{where}: the next call may need {tokens} tokens, but of the budget of "
                f"{self.max_tokens} tokens {self.tokens} are used and {self._reserved} are held "
                "for calls on their way; nothing was sent. Raise max_tokens_total to go on"
            )
        self.calls += 1
        self._reserved += tokens

    def settle(self, reserved: int, used: int) -> None:
        """Replace a reservation by what the call really used (0 if it failed)."""
        self._reserved -= reserved
        self.tokens += used
