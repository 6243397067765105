"""Pictures as tokens of a prompt.

The vision part of a network turns a picture into vectors, which take the place of word embeddings
in the prompt. Here each of these vectors has a separate token id, after those of the vocabulary, so
that a prompt with pictures is a list of ids like any other: it can be batched, scored, trained on
and compared with others (two prompts share a prefix if the pictures in it are the same). When the
network reads such ids, they are replaced with the vectors.

Adapters change the language layers only. So the vectors of a picture are the same for all adapters
and versions, and are computed once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from inspect import signature
from io import BytesIO
from typing import Any

import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor, nn
from transformers import PreTrainedModel

from swarm_ui.errors import ModelError

_PICTURES = 4096
"""Number of pictures that are known; the ids of older ones cannot be read any more."""
_UNREADABLE = (
    UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError,
)  # fmt: skip
_VECTORS = 64
"""Number of pictures whose vectors are kept; those of others are computed again."""


@dataclass(slots=True)
class _Picture:
    """A picture in the prompt."""

    png: bytes
    first: int
    """Id of its first vector."""
    expansion: list[int]
    """Token ids of the picture in a prompt: placeholders for its vectors, with tokens of the
    vocabulary between them."""
    vectors: int
    """Number of its vectors."""
    inputs: Mapping[str, Tensor] | None
    """The input of the vision part; ``None``: it must be computed again."""
    offsets: Tensor | None = None
    """Positions of its vectors minus a count of tokens, ``[3, vectors]``; ``None``: the network
    counts tokens."""
    shift: int = 0
    """Positions minus token count, for the tokens after the picture."""


class PictureTokens:
    """The pictures that a vision-language model was shown."""

    def __init__(self, network: PreTrainedModel, processor: Any, image_id: int) -> None:
        """
        Args:
            network: replaces ids of pictures with vectors in each forward from now on.
            processor: a processor of transformers.
            image_id: the token for a picture in a chat.
        """
        embeddings: Any = network.get_input_embeddings()
        self.vocabulary = int(embeddings.weight.shape[0])
        """Number of ids that stand for words; greater ones stand for pictures."""
        self._network, self._processor, self._image_id = network, processor, image_id
        self._body: Any = network.model
        self._readable = frozenset(signature(self._body.get_image_features).parameters)
        self._rotates = hasattr(self._body, "get_rope_index")
        self._next = self.vocabulary
        self._known: OrderedDict[str, _Picture] = OrderedDict()
        self._firsts: list[int] = []
        self._by_first: dict[int, _Picture] = {}
        self._vectors: OrderedDict[int, Tensor] = OrderedDict()
        # Not of the network: choices are computed by the body, without the head.
        self._body.register_forward_pre_hook(self._before_forward, with_kwargs=True)

    def expand(self, png: bytes) -> list[int]:
        """The token ids that represent a picture. Raises ``ModelError`` if the picture cannot be
        read."""
        key = sha256(png).hexdigest()
        picture = self._known.get(key)
        if picture is None:
            picture = self._known[key] = self._added(png)
        self._known.move_to_end(key)
        while len(self._known) > _PICTURES:
            self._forget(self._known.popitem(last=False)[1])
        return picture.expansion

    def plain(self, ids: Tensor) -> Tensor:
        """The ids, in which the token for pictures replaces the ids of picture vectors."""
        return ids.masked_fill(ids >= self.vocabulary, self._image_id)

    # -- pictures -----------------------------------------------------------------------------

    def _added(self, png: bytes) -> _Picture:
        words, inputs = self._processed(png)
        here = [k for k, word in enumerate(words) if word == self._image_id]
        for number, k in enumerate(here):
            words[k] = self._next + number
        picture = _Picture(png, self._next, words, len(here), inputs)
        if self._rotates:
            picture.offsets, picture.shift = self._positions(len(here), inputs)
        self._next += len(here)
        self._firsts.append(picture.first)
        self._by_first[picture.first] = picture
        return picture

    def _processed(self, png: bytes) -> tuple[list[int], dict[str, Tensor]]:
        """The tokens of a picture, without ids of vectors, and the input of the vision part."""
        try:
            image = Image.open(BytesIO(png)).convert("RGB")
        except _UNREADABLE as error:
            raise ModelError(f"a picture of {len(png)} bytes cannot be read: {error}") from error
        read = self._processor(
            text=self._processor.image_token,
            images=[image],
            return_tensors="pt",
            add_special_tokens=False,
        )
        inputs = {name: value for name, value in read.items() if name in self._readable}
        return read["input_ids"][0].tolist(), inputs

    def _positions(self, vectors: int, inputs: Mapping[str, Tensor]) -> tuple[Tensor, int]:
        """Offsets and shift of a picture, for networks that number rows and columns."""
        ids = torch.full((1, vectors), self._image_id)
        grid = inputs["image_grid_thw"]
        places, shift = self._body.get_rope_index(ids, torch.ones_like(ids), image_grid_thw=grid)
        return places[:, 0] - torch.arange(vectors), int(shift)

    def _forget(self, picture: _Picture) -> None:
        self._firsts.remove(picture.first)
        del self._by_first[picture.first]
        self._vectors.pop(picture.first, None)

    def _shown(self, ids: Tensor) -> Iterator[tuple[_Picture, Tensor]]:
        """The pictures to which ids of vectors belong, each with the positions of its ids."""
        firsts = {bisect_right(self._firsts, id_) - 1 for id_ in set(ids.tolist())}
        for place in sorted(firsts):
            if place < 0:
                raise _forgotten()
            picture = self._by_first[self._firsts[place]]
            yield picture, (ids >= picture.first) & (ids < picture.first + picture.vectors)

    def _vectors_of(self, picture: _Picture) -> Tensor:
        """The vectors of a picture, ``[vectors, width]``; computed when they are first needed."""
        vectors = self._vectors.get(picture.first)
        if vectors is None:
            inputs = picture.inputs or self._processed(picture.png)[1]
            picture.inputs = None
            network = self._network
            there = {name: value.to(network.device) for name, value in inputs.items()}
            with self._steady():
                seen = self._body.get_image_features(**there, return_dict=True).pooler_output
            vectors = torch.cat(list(seen)).reshape(-1, seen[0].shape[-1])
            if len(vectors) != picture.vectors:
                raise ModelError(
                    f"the processor makes {picture.vectors} tokens for a picture, and the network "
                    f"{len(vectors)} vectors; the two do not belong together"
                )
            self._vectors[picture.first] = vectors
        self._vectors.move_to_end(picture.first)
        while len(self._vectors) > _VECTORS:
            self._vectors.popitem(last=False)
        return vectors

    @contextmanager
    def _steady(self) -> Iterator[None]:
        """A context in which vectors are computed without dropout, gradients and autocast, so that
        training and inference get the same vectors."""
        network, training = self._network, self._network.training
        with (
            torch.inference_mode(False),
            torch.no_grad(),
            torch.autocast(network.device.type, enabled=False),
        ):
            network.train(False)
            try:
                yield
            finally:
                network.train(training)

    # -- forwards -----------------------------------------------------------------------------

    def _before_forward(
        self, network: nn.Module, args: tuple[Any, ...], inputs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Replace ids of vectors with the vectors."""
        ids = inputs.get("input_ids")
        if ids is None or inputs.get("pixel_values") is not None:
            return None
        seen = ids >= self.vocabulary
        pictured = ids.shape[1] > 1 and bool(seen.any())
        new = dict(inputs)
        if self._rotates:
            new["position_ids"] = self._rotated(ids, seen, pictured, inputs)
        if pictured:
            new["input_ids"], new["inputs_embeds"] = None, self._embedded(ids, seen)
        return args, new

    def _embedded(self, ids: Tensor, seen: Tensor) -> Tensor:
        """The embeddings of tokens and pictures, ``[rows, tokens, width]``."""
        embeddings: Any = self._network.get_input_embeddings()
        embedded: Tensor = embeddings(self.plain(ids))
        wanted = ids[seen]
        vectors = embedded.new_empty((len(wanted), embedded.shape[-1]))
        covered = torch.zeros_like(wanted, dtype=torch.bool)
        for picture, own in self._shown(wanted):
            vectors[own] = self._vectors_of(picture)[wanted[own] - picture.first].to(vectors.dtype)
            covered |= own
        if not bool(covered.all()):
            raise _forgotten()
        return embedded.masked_scatter(seen[..., None], vectors)

    def _rotated(
        self, ids: Tensor, seen: Tensor, pictured: bool, inputs: Mapping[str, Any]
    ) -> Tensor:
        """Positions of tokens, of rows and of columns, ``[3, rows, tokens]``."""
        positions = inputs.get("position_ids")
        if positions is None:
            positions = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        if positions.ndim == 3:  # they are complete
            return positions
        cache = inputs.get("past_key_values")
        carried = getattr(cache, "of_rows", {}).get("shifts")
        if carried is None:
            if cache is not None and cache.get_seq_length() > 0:
                raise ModelError(
                    "the keys and values of a prompt came without the positions of its pictures; "
                    "this network cannot continue prompts of other requests"
                )
            carried = torch.zeros_like(ids[:, :1])
        positions = (positions + carried).expand(3, *ids.shape)
        if pictured:
            offsets = torch.zeros((3, *ids.shape), dtype=ids.dtype, device=ids.device)
            shifts = torch.zeros_like(ids)
            wanted = ids[seen]
            own_offsets, own_shifts = offsets[:, seen], shifts[seen]
            for picture, own in self._shown(wanted):
                assert picture.offsets is not None
                own_offsets[:, own] = picture.offsets.to(ids)[:, wanted[own] - picture.first]
                last = wanted == picture.first + picture.vectors - 1
                own_shifts[last] = picture.shift
            offsets[:, seen], shifts[seen] = own_offsets, own_shifts
            positions = positions + offsets + (shifts.cumsum(1) - shifts)
            carried = carried + shifts.sum(1, keepdim=True)
        if cache is not None:
            cache.of_rows["shifts"] = carried
        return positions


def _forgotten() -> ModelError:
    return ModelError(
        f"a prompt contains a picture that is no longer in memory; {_PICTURES} pictures are kept. "
        "Encode the prompt again"
    )
