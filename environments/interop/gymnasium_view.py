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

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Literal

from swarm_ui.environment import Environment
from swarm_ui.environments.action_choices import phrases
from swarm_ui.environments.interop.blocking import BlockingEnvironment
from swarm_ui.environments.interop.spaces import WAIT, ActionSpace, ScreenSpace, Sizes, drawn
from swarm_ui.errors import ConfigError, MissingExtra
from swarm_ui.observation import Observation, render

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
    is a lost step with ``info["note"]``. A fault raises ``EnvironmentFault``; it is never a reward
    of 0. ``info["observation"]`` is the complete observation.

    ``reset(seed=...)`` seeds the choice of task and episode; ``reset(options={"task": ...,
    "episode": 7})`` sets them.

    Args:
        make: makes the environment.
        tasks: tasks to choose from; all by default.
        seeds: seeds of episodes to choose from.
        actions: indices or JSON.
        texts: makes the texts that may be typed from the goal; for actions as indices.
        sizes: the sizes of the spaces.
        render_mode: ``"ansi"``: the screen as text; ``"rgb_array"``: its screenshot, or a sketch of
            its elements if there is none.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # type: ignore[misc]

    def __init__(
        self,
        make: Callable[[], Environment | Awaitable[Environment]],
        *,
        tasks: Sequence[str] | None = None,
        seeds: Sequence[int] = range(10_000),
        actions: Literal["index", "json"] = "index",
        texts: Callable[[str], Sequence[str]] = phrases,
        sizes: Sizes | None = None,
        render_mode: RenderMode | None = None,
    ) -> None:
        sizes = sizes or Sizes()
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ConfigError(
                f"GymView: render_mode is {render_mode!r}, expected one of {', '.join(modes)}"
            )
        self.render_mode = render_mode
        self._screens = ScreenSpace(sizes)
        self._actions = ActionSpace(actions, sizes, texts)
        self.observation_space = self._screens.space
        self.action_space = self._actions.space()
        self._world = BlockingEnvironment(make)
        self._tasks = tuple(self._world.tasks if tasks is None else tasks)
        self._seeds = seeds
        self._screen: Observation | None = None
        if not self._tasks or not seeds:
            self._world.close()
            raise ConfigError("GymView: there are no tasks or no seeds to choose from")

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        drawn = self._tasks[int(self.np_random.integers(len(self._tasks)))]
        episode = int(self._seeds[int(self.np_random.integers(len(self._seeds)))])
        task = str((options or {}).get("task", drawn))
        episode = int((options or {}).get("episode", episode))
        screen = self._world.reset(task=task, seed=episode)
        info = self._shown(screen, over=False)
        return self._screens.encode(screen), {**info, "task": task, "episode": episode}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        meant, lost = self._actions.decode(action)
        step = self._world.step(meant or WAIT)
        info = self._shown(step.observation, over=step.ended)
        info["note"] = lost or step.note
        observation = self._screens.encode(step.observation)
        return observation, step.reward, step.terminated, step.truncated, info

    def render(self) -> Any:
        if self.render_mode is None or self._screen is None:
            return None
        return render(self._screen) if self.render_mode == "ansi" else drawn(self._screen)

    def close(self) -> None:
        self._world.close()

    def _shown(self, screen: Observation, *, over: bool) -> dict[str, Any]:
        self._screen = screen
        self._actions.look(None if over else screen)
        return {
            "observation": screen,
            "actions": tuple(self._actions.offered),
            "note": "",
            **self._actions.mask(),
        }


def register(
    id: str, make: Callable[[], Environment | Awaitable[Environment]], **options: Any
) -> None:
    """Register an environment for ``gymnasium.make(id)`` and ``make_vec(id)``.

    Args:
        id: such as ``"swarm_ui/Phone-v0"``.
        make: makes the environment.
        options: of :class:`GymView`.
    """
    gymnasium.register(
        id=id,
        entry_point="swarm_ui.environments.interop.gymnasium_view:GymView",
        kwargs={"make": make, **options},
        # The view checks this itself.
        order_enforce=False,
        disable_env_checker=True,
    )
