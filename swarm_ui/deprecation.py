"""Old names that keep working for one version, each with a :class:`DeprecationWarning`."""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

MODULES = {
    "draw": "viz",
    "environments.android": "environments.androidworld.handset",
    "environments.androidworld_emulator": "environments.androidworld.emulator",
    "environments.androidworld_process": "environments.androidworld.process",
    "environments.androidworld_suite": "environments.androidworld.suite",
    "environments.check": "environments.contract_check.check",
    "environments.gym": "environments.interop.gymnasium_view",
    "environments.petting": "environments.interop.pettingzoo_view",
    "events": "engine.events",
    "executor": "engine.executor",
    "lazy": "trace.reader",
    "limits": "engine.limits",
    "nodes.architecture": "nodes.models.tiny_agent.architecture",
    "nodes.cache": "nodes.models.transformers.decoding.kv_cache",
    "nodes.causal": "nodes.models.transformers.causal_model",
    "nodes.local": "nodes.models.tiny_agent.local_model",
    "nodes.openai_model": "nodes.models.openai.model",
    "nodes.scripted": "nodes.models.scripted.scripted_model",
    "nodes.tally": "nodes.vote",
    "optim.adapters": "optim.update.adapter_trainer",
    "optim.advantages": "optim.preferences.advantages",
    "optim.adversary": "optim.preferences.adversary",
    "optim.adversary_scripted": "optim.preferences.scripted_adversary",
    "optim.corpus": "optim.stage1",
    "optim.corpus.finetune": "optim.stage1.finetune.finetune",
    "optim.corpus.synthesize": "optim.stage1.corpus.synthesize",
    "optim.credit.counterfactual": "optim.credit.assigners.counterfactual",
    "optim.credit.mixture": "optim.credit.assigners.mixture",
    "optim.credit.shapley": "optim.credit.assigners.shapley_values",
    "optim.critic": "optim.credit.assigners.critic",
    "optim.critic_llm": "optim.credit.assigners.llm_critic",
    "optim.edge_audit": "optim.edges.prune_agents",
    "optim.edge_credit": "optim.edges.edge_credit",
    "optim.edge_files": "optim.edges.files",
    "optim.edge_optimizer": "optim.edges.optimizer",
    "optim.edge_pace": "optim.edges.cost_limit",
    "optim.edge_sequential": "optim.edges.sequential",
    "optim.edge_thompson": "optim.edges.thompson",
    "optim.losses": "optim.update.losses",
    "optim.pairs": "optim.preferences.pairs",
    "optim.repair": "optim.edges.prune_agents",
    "optim.stats": "stats",
    "optim.team_config": "optim.config",
    "optim.tensorboard": "optim.loggers.tensorboard_logger",
    "policy": "rollout.policy",
    "pool": "rollout.pool",
    "records": "trace.jsonl",
    "report.data": "report.contents",
    "report.gather": "report.run_reader",
    "rundir": "storage.run_directory",
    "shapes": "graph.shapes",
    "store": "storage.protocol",
    "stores": "storage",
    "stores.directory": "storage.directory_store",
    "stores.sqlite": "storage.sqlite_store",
    "telemetry": "engine.telemetry",
    "topology": "graph.topology",
    "view": "agent_view",
}
"""The present name of each documented module that was renamed, both without ``swarm_ui.``."""

NAMES = {
    "": {
        "Guidance": "rollout.episodes:Intervention",
        "LoopGuard": "rollout.policy:LoopEscapePolicy",
        "Pass": "action:Abstain",
    },
    "action": {"Pass": "action:Abstain"},
    "engine.events": {
        "Spoken": "engine.events:CallFinished",
        "Tell": "engine.events:OnEvent",
        "tell_all": "engine.events:Listeners",
    },
    "environments.androidworld": {
        "AndroidWorldEnvironment": "environments.androidworld.environment:AndroidWorldEnvironment",
    },
    "graph": {"CollabGraph": "graph.graph:CollabGraph"},
    "message": {"passes": "prompts:abstains", "abstains": "prompts:abstains"},
    "optim.edges": {"EdgeDistribution": "optim.edges.distribution:EdgeDistribution"},
    "optim.loggers.tensorboard_logger": {
        "TensorBoard": "optim.loggers.tensorboard_logger:TensorBoardLogger",
        "scalars": "optim.metrics:scalars",
    },
    "optim.stage1": {
        "Stage1Config": "optim.stage1.supervised:Stage1Config",
        "train": "optim.stage1.supervised:train",
    },
    "rollout": {
        "Guidance": "rollout.episodes:Intervention",
        "Observe": "rollout.episodes:Intervene",
    },
    "storage.protocol": {"Spoken": "storage.protocol:RecordedCall"},
}
"""For a module (without ``swarm_ui.``) the names it used to have, and ``module:name`` of today."""


class _Finder(MetaPathFinder):
    """Finds the modules of :data:`MODULES`, and their submodules, under their old names."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("swarm_ui."):
            return None
        parts = name.split(".")[1:]
        for length in range(len(parts), 0, -1):
            new = MODULES.get(".".join(parts[:length]))
            if new is not None:
                return ModuleSpec(name, _Alias(".".join(["swarm_ui", new, *parts[length:]])))
        return None


class _Alias(Loader):
    """Registers a module under its old name too."""

    def __init__(self, new: str) -> None:
        self._new = new

    def exec_module(self, module: ModuleType) -> None:
        _warn(f"the module {module.__name__} was renamed to {self._new}", stacklevel=3)
        sys.modules[module.__name__] = importlib.import_module(self._new)
        parent, _, name = module.__name__.rpartition(".")
        package = sys.modules[parent]
        if not isinstance(vars(package).get(name), ModuleType | None):
            sys.modules[parent] = _Unchanged(package, parent)


class _Unchanged(ModuleType):
    """Stands for a package while one of its modules is imported under an old name.

    The import system ends by setting the module as an attribute of the package. If the package has
    a function of that name, as ``optim.stage1`` has ``finetune``, the function would be lost.
    """

    def __init__(self, package: ModuleType, name: str) -> None:
        self.__dict__.update(package.__dict__, _package=package, _name=name)

    def __setattr__(self, name: str, value: object) -> None:
        sys.modules[self.__dict__["_name"]] = self.__dict__["_package"]


def install() -> None:
    """Make modules importable under their old names. May be called twice."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # In front, since a folder would find its own modules a second time under an old name.
        sys.meta_path.insert(0, _Finder())


def renamed_names(module: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module with old names; see :data:`NAMES`."""
    names = NAMES[module.removeprefix("swarm_ui").removeprefix(".")]

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        place, _, new = names[name].partition(":")
        _warn(f"{module}.{name} was renamed to swarm_ui.{place}.{new}", stacklevel=3)
        return getattr(importlib.import_module(f"swarm_ui.{place}"), new)

    return get


def renamed_keywords(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function also accept the old names of some keyword arguments.

    Args:
        names: the new name of each old one: ``@renamed_keywords(tell="on_event")``.

    Raises:
        TypeError: (when the function is called) both names of one argument were given.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if kwargs.keys() & names.keys():
                _rename(function.__qualname__, kwargs, names)
            return function(*args, **kwargs)

        return call

    return decorate


def renamed_property(old: str, new: str) -> Any:
    """A deprecated name of an attribute, for a class that has it under a new name."""

    def get(self: object) -> Any:
        _warn(f"{type(self).__name__}.{old} was renamed to '{new}'", stacklevel=3)
        return getattr(self, new)

    return property(get)


def _rename(function: str, kwargs: dict[str, Any], names: dict[str, str]) -> None:
    for old, new in names.items():
        if old not in kwargs:
            continue
        if new in kwargs:
            raise TypeError(f"{function}() got both '{new}' and '{old}', its old name")
        _warn(f"{function}(): the argument '{old}' was renamed to '{new}'", stacklevel=4)
        kwargs[new] = kwargs.pop(old)


def _warn(renamed: str, stacklevel: int) -> None:
    said = f"{renamed}; the old name will be removed in the next version"
    warnings.warn(said, DeprecationWarning, stacklevel)
