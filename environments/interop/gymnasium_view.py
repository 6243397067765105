"""Any environment as a Gymnasium environment.

    from swarm_ui.environments.interop.gymnasium_view import GymView

    env = GymView(PhoneEnvironment, tasks=["contacts-add"], seeds=TRAIN_SEEDS)
    observation, info = env.reset(seed=7)
    observation, reward, terminated, truncated, info = env.step(
        env.action_space.sample(mask=info["action_mask"])
    )

Needs the extra ``gym``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

from swarm_ui.environments.action_choices import phrases
from swarm_ui.environments.interop.blocking import Make
from swarm_ui.environments.interop.spaces import WAIT, ActionKind, Episodes, Sizes, drawn
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.observation import render

try:
    import gymnasium
except ImportError:
    raise MissingExtra("gym", "the Gymnasium view", "gymnasium") from None

__all__ = ["GymView", "Sizes", "register"]

RenderMode = Literal["ansi", "rgb_array"]


class GymView(gymnasium.Env[dict[str, Any], Any]):
    """An environment behind Gymnasium's interface.

    Observations are dictionaries of texts and arrays (:class:`.spaces.ScreenSpace`). An action is
    an index into ``info["actions"]``, the actions of the present screen; ``info["action_mask"]``
    marks the valid indices. With ``actions="json"`` an action is its JSON text. An invalid action
    changes nothing and costs a step; ``info["note"]`` has the reason. A fault raises
    ``EnvironmentFault``; it is never a reward of 0. ``info["observation"]`` is the complete
    observation.

    ``reset(seed=...)`` seeds the choice of task and episode; ``reset(options={"task": ...,
    "episode": 7})`` sets them.

    Args:
        make: makes the environment.
        tasks: tasks to choose from; all by default.
        seeds: seeds of episodes to choose from.
        actions: indices or JSON.
        texts: a function from the goal to the texts that may be typed; used if actions are indices.
        sizes: the sizes of the spaces.
        render_mode: ``"ansi"``: the screen as text; ``"rgb_array"``: its screenshot, or a sketch of
            its elements if there is none.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        make: Make,
        *,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int] = range(10_000),
        actions: ActionKind = "index",
        texts: Callable[[str], Sequence[str]] = phrases,
        sizes: Sizes | None = None,
        render_mode: RenderMode | None = None,
    ) -> None:
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ConfigError(
                f"GymView: render_mode is {render_mode!r}, expected one of {', '.join(modes)}"
            )
        self.render_mode = render_mode
        self._episodes = Episodes("GymView", make, tasks, seeds, actions, texts, sizes or Sizes())
        self.observation_space = self._episodes.screens.space
        self.action_space = self._episodes.action_space()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        info = self._episodes.reset(lambda n: int(self.np_random.integers(n)), options)
        return self._encoded(info)

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        meant, lost = self._episodes.decode(action)
        step = self._episodes.world.step(meant or WAIT)
        info = self._episodes.show(step.observation, lost or step.note, over=step.ended)
        observation, info = self._encoded(info)
        return observation, step.reward, step.terminated, step.truncated, info

    def render(self) -> Any:
        screen = self._episodes.screen
        if self.render_mode is None or screen is None:
            return None
        return render(screen) if self.render_mode == "ansi" else drawn(screen)

    def close(self) -> None:
        self._episodes.world.close()

    def _encoded(self, info: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        screen = self._episodes.screens.encode(info["observation"])
        return screen, {**info, **self._episodes.mask()}


def register(id: str, make: Make, **options: Any) -> None:
    """Register an environment for ``gymnasium.make(id)`` and ``make_vec(id)``.

    Args:
        id: the id of the environment, such as ``"swarm_ui/Phone-v0"``.
        make: makes the environment.
        options: the options of :class:`GymView`.
    """
    gymnasium.register(
        id=id,
        entry_point="swarm_ui.environments.interop.gymnasium_view:GymView",
        kwargs={"make": make, **options},
        # The view checks this itself.
        order_enforce=False,
        disable_env_checker=True,
    )
