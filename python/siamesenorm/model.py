"""Models of the engine as modules of PyTorch: any family, any scheme."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ._config import FOLDERS, Config, as_overrides, as_source
from ._native import binding
from ._prototype import MakeScheme, Verbs, made_by
from ._tree import Node, attach, tensor_at
from .errors import UsageError
from .scheme import Scheme


class Model(Node):
    """A model of the engine: the forward pass is the C++ one, on this module's own tensors.

    config: a recipe, a YAML file or a dict ({"model": {"width": 64, ...}, ...}); overrides as keywords
    (`model__residual="pre"`). Initial weights are those with which `siamese train` would start: of `train.seed`.
    scheme: one that is being invented, in place of model.residual: a class derived from `Scheme`, or a function
    (width, blocks) that makes one. It becomes `model.scheme`, its parameters learn with the others, and everything
    else stays the engine's: sublayers, losses, generation.

    Parameters have the engine's names (docs/checkpoints.md), so that `state_dict()` is what model.safetensors holds.
    `model.config` is the resolved config, `model.family` one of lm, moe, vit, dit.
    """

    def __init__(
        self,
        config: Config,
        *,
        scheme: MakeScheme | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **overrides: Any,
    ) -> None:
        super().__init__()
        source, is_text = as_source(config)
        if scheme is not None:
            if {"model__residual", "model.residual"} & overrides.keys():
                raise UsageError("scheme: expected it or model.residual, got both")
            overrides["model.residual"] = "python"
        text = binding().resolve_config(source, is_text, as_overrides(overrides), FOLDERS)
        made = None
        if scheme is not None:
            shape = binding().config_dict(text)["model"]
            made = made_by(scheme, shape["width"], shape["blocks"])
        tensors = binding().fresh_model(text, None if made is None else Verbs(made))
        self._build(text, tensors, 0, device, dtype, made)

    def _build(
        self,
        text: str,
        tensors: Sequence[tuple[str, str | None, Tensor]],
        context: int,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
        scheme: Scheme | None = None,
        branch_scales: Sequence[float] = (),
    ) -> None:
        self._text = text
        self._context = context
        self.scheme = scheme
        self.branch_scales = list(branch_scales)
        self._bind()
        self.config: dict[str, Any] = binding().config_dict(text)
        self.family: str = self.config["model"]["family"]
        self.step = 0
        self._paths: list[tuple[str, ...]] = []
        self._buffer_names: list[str] = []
        for name, kind, value in tensors:
            attach(self, name, value, kind)
            if kind is None:
                self._buffer_names.append(name)
            else:
                self._paths.append(tuple(name.split(".")))
        self.to(device=device or torch.get_default_device(), dtype=dtype or torch.get_default_dtype())

    def _bind(self) -> None:
        """The engine's side: shapes only, so it is made again for a copy."""
        verbs = None if self.scheme is None else Verbs(self.scheme)
        self._engine = binding().EngineModel(self._text, self._context, verbs, self.branch_scales)

    def _values(self) -> list[Tensor]:
        return [tensor_at(self, path) for path in self._paths]

    def _buffers_now(self) -> dict[str, Tensor]:
        return {name: tensor_at(self, tuple(name.split("."))) for name in self._buffer_names}

    @torch.compiler.disable
    def forward(self, x: Tensor, timesteps: Tensor | None = None, labels: Tensor | None = None) -> Tensor:
        """What the model makes of its input, differentiable, nothing drawn.

        lm, moe: tokens int64 [batch, n] -> logits [batch, n, vocab].
        vit: images [batch, channels, image, image] -> logits [batch, classes].
        dit: noised latents [batch, channels, image, image], timesteps and labels int64 [batch]
             -> [batch, out channels, image, image].
        """
        return self._engine.forward(self._values(), self._buffers_now(), x, timesteps, labels)

    @torch.compiler.disable
    def hidden(self, x: Tensor) -> Tensor:
        """lm, moe: tokens int64 [batch, n] -> final hidden state [batch, n, width]; vit: images -> [batch, width]."""
        return self._engine.hidden(self._values(), self._buffers_now(), x)

    @torch.compiler.disable
    def losses(
        self,
        x: Tensor,
        labels: Tensor | None = None,
        *,
        weights: Tensor | None = None,
        targets: Tensor | None = None,
        position: int = 0,
        seed: int = 0,
        recompute: int = 0,
        **terms: float,
    ) -> dict[str, Tensor]:
        """What training minimises: {"objective": differentiable, "loss": the task's own term, further terms by name}.

        lm, moe: x are tokens int64 [batch, n + 1], weights [batch, n] says which targets count; the mean over those.
        vit: images and labels int64 [batch], or targets [batch, classes]; dit: images and labels.
        In train mode drop-path and label dropout act; what is drawn for a sample is a function of `seed` and of its
        `position` in the run. recompute: blocks per segment computed again in backward (not with a scheme in Python).
        terms: z_loss, balance_loss, router_z_loss, the weights of further terms.
        """
        given = (x, labels, weights, targets, position, seed, recompute, self.training, terms)
        return dict(self._engine.losses(self._values(), self._buffers_now(), *given))

    @torch.compiler.disable
    def generate(
        self,
        prompts: Sequence[int] | Sequence[Sequence[int]] | Tensor,
        max_tokens: int = 64,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
        stop: int | None = None,
    ) -> list[Any]:
        """Continues one prompt (a list of tokens) or several, with cached keys and values: the new tokens of each.

        temperature 0 is greedy. `stop` ends a sequence and is not returned. Past the context a model with rotary
        positions slides, one with learned positions ends.
        """
        lists: list[Any] = prompts.tolist() if isinstance(prompts, Tensor) else list(prompts)
        one = not lists or isinstance(lists[0], int)
        asked = [lists] if one else [list(each) for each in lists]
        made = self._engine.generate(
            self._values(), self._buffers_now(), asked, max_tokens, temperature, top_k, top_p, seed, stop
        )
        return made[0] if one else made

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        del state["_engine"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._bind()

    def extra_repr(self) -> str:
        model = self.config["model"]
        residual = model["residual"] if self.scheme is None else type(self.scheme).__name__
        return f"{self.family}, {residual}, width={model['width']}, blocks={model['blocks']}"


def load(
    path: str | Path,
    *,
    averaged: bool = False,
    context: int = 0,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Model:
    """The model of a run directory (its latest checkpoint) or of a checkpoint, whatever its family.

    averaged: the moving average of the weights instead (train.ema). context: a model with rotary positions may see
    more tokens than it was trained with. `model.step` is where the run was. Of a checkpoint in the middle of a residual
    warm-up (train.residual_warmup), `model.branch_scales` are the factors of its blocks at that step: every pass has
    them, as `siamese eval` does. Else it is empty.
    """
    text, tensors, step, branch_scales = binding().load_model(str(path), averaged)
    model = Model.__new__(Model)
    Node.__init__(model)
    model._build(text, tensors, context, device, dtype, branch_scales=branch_scales)
    model.step = step
    return model.eval()


def save(model: Model, folder: str | Path, *, overwrite: bool = False) -> None:
    """Writes config.yaml and model.safetensors, which every verb of the engine takes: `siamese eval FOLDER`.

    Written aside and renamed as a whole. overwrite: an earlier folder of these two files is replaced. A model whose
    scheme is in Python is refused: the engine could not read it; `torch.save(model.state_dict(), file)` keeps it.
    """
    if model.scheme is not None:
        name = type(model.scheme).__name__
        raise UsageError(f"save: expected a scheme of the engine, got {name}, in Python: torch.save its state_dict()")
    if model.branch_scales:
        raise UsageError("save: expected a model past its residual warm-up: its weights alone are another model")
    tensors = {name: tensor_at(model, tuple(name.split("."))) for name in _names(model)}
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    binding().save_model(model._text, plain, str(folder), overwrite)


def _names(model: Model) -> list[str]:
    return [".".join(path) for path in model._paths] + model._buffer_names
