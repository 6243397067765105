"""How a model behind an endpoint is sent to another process: its settings, without secrets.

The other process reads the key, and an address with a password, from its own environment. It opens
its own connections. Limits that are counted (rates, budgets) are sent only if one process keeps
them for all (:func:`swarm_ui.nodes.models.remote.limits.share_limits`).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from swarm_ui.budget import Budget, Price
from swarm_ui.errors import ConfigError
from swarm_ui.nodes.models.openai.admission import Admission, LocalAdmission
from swarm_ui.nodes.models.openai.secrets import without_credentials
from swarm_ui.nodes.models.openai.settings import ChatOptions, RateLimits, RetryPolicy

_URL_VARIABLE = "OPENAI_BASE_URL"


@dataclass(frozen=True, slots=True)
class SentModel:
    """The settings of an :class:`~swarm_ui.nodes.OpenAIModel`, as they are sent."""

    model: str
    url: str | None
    """``None`` if the address contains a password; the receiver reads it from its environment."""
    key_env: str
    key_given: bool
    """Whether the key was an argument. It is not sent."""
    limits: RateLimits
    retry: RetryPolicy
    prices: Mapping[str, Price]
    options: ChatOptions
    adapter_names: Mapping[str, str] | None
    """The served names at the time when the model was sent."""
    loaded: Mapping[str, tuple[Path, str]]
    """Folder and salt of each version that was loaded on the server, by its served name."""
    unsupported: frozenset[str]
    counts_tokens: bool
    """Whether a rate or a budget, which another process keeps, limits tokens or money."""
    admission: Callable[[], Admission] | None
    """Makes the admission that asks for permits elsewhere; ``None``: nothing is limited."""

    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of ``OpenAIModel`` in the receiving process."""
        return {
            "model": self.model,
            "base_url": self.url or self._own_url(),
            "api_key_env": self.key_env,
            "limits": self.limits,
            # Equal generators in all workers would make them wait for the same times.
            "retry": replace(self.retry, jitter=random.Random()),
            "budget": Budget(prices=self.prices),
            "options": self.options,
            "adapter_names": self.adapter_names,
        }

    def _own_url(self) -> str:
        url = os.environ.get(_URL_VARIABLE)
        if not url:
            raise ConfigError(
                f"model '{self.model}': its address contains a password, which is never sent to "
                f"workers; set {_URL_VARIABLE} in the environment of every worker"
            )
        return url


def sent_url(url: str, model: str) -> str | None:
    """The address in the form in which it is sent; ``None``: the receiver reads it from its
    environment.

    Raises:
        ConfigError: it contains a password or a query, and does not come from the environment.
    """
    if without_credentials(url) == url.rstrip("/"):
        return url
    if url == os.environ.get(_URL_VARIABLE):
        return None
    raise ConfigError(
        f"model '{model}' at {without_credentials(url)}: its base_url contains a password or a "
        f"query, which is never sent to workers. Put the whole address into {_URL_VARIABLE} in the "
        "environment of every worker and of this process, and leave base_url out"
    )


def sent_admission(
    admission: Callable[[], Admission], limits: RateLimits, where: str
) -> Callable[[], Admission] | None:
    """The object that limits calls, in the form in which it is sent; ``None`` if nothing is
    limited.

    Raises:
        ConfigError: there are limits, and each process would count only its own calls.
    """
    if not (isinstance(admission, partial) and admission.func is LocalAdmission):
        return admission
    budget: Budget = admission.args[1]
    if budget.limited or limits.counted:
        raise ConfigError(
            f"{where}: it has a rate limit or a budget, and each copy in another process would "
            "count only its own calls. Let one process keep the limits for all: "
            "limits = share_limits(model), from swarm_ui.nodes.models.remote"
        )
    return None
