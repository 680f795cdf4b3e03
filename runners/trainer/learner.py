"""One optimiser step from graded groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rlcast.recipe import Recipe
from runners.trainer.batch import Batch, make_batch
from runners.trainer.losses import token_losses
from runners.trainer.types import Group

Part = tuple[float, Float[Tensor, " token"]]  # a micro-batch's share of the loss, its tokens' ratios


@dataclass(frozen=True)
class UpdateStats:
    """What one update did.

    trained_tokens: prompt and completion tokens of the rows trained on. ess: effective sample size of the
    tokens' ratios pi_train / pi_gen, 1 when on-policy.
    """

    loss: float
    grad_norm: float
    rows: int
    trained_tokens: int
    ess: float


def token_logprobs(
    model: torch.nn.Module, token_ids: Int[Tensor, "sample position"]
) -> Float[Tensor, "sample position"]:
    """Log-probability of each token given those before it; 0 for the first, which nothing predicts."""
    logits = model(token_ids)[:, :-1]
    chosen = token_ids[:, 1:, None]
    logprobs = logits.gather(2, chosen)[..., 0] - logits.logsumexp(dim=-1)
    return torch.nn.functional.pad(logprobs, (1, 0))


def effective_sample_size(ratios: Float[Tensor, " token"]) -> float:
    """(sum w)^2 / (n sum w^2), between 1/n and 1: weights 1, 1, 2, 4 give 64 / (4 * 22) = 0.727."""
    return float(ratios.sum().square() / (len(ratios) * ratios.square().sum()))


class Learner:
    """Holds the policy's optimiser: AdamW, linear warm-up, then a constant learning rate."""

    def __init__(self, model: torch.nn.Module, recipe: Recipe, pad_id: int, max_rows: int = 512) -> None:
        plan = recipe.optimizer
        self._model = model
        self._recipe = recipe
        self._pad_id = pad_id
        self._max_rows = max_rows
        self.optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=plan.learning_rate,
            betas=(plan.beta1, plan.beta2),
            eps=plan.eps,
            weight_decay=plan.weight_decay,
        )

    def start(self) -> None:
        """Called once the model has the weights that training begins with."""

    def watched(self) -> list[Any]:
        """What `multiprocessing.connection.wait` may wait for beside other things: see `check`."""
        return []

    def check(self) -> None:
        """Raises when a process that takes part in the updates has died."""

    def close(self) -> None: ...

    def update(self, groups: list[Group], step: int) -> UpdateStats:
        """The update number `step` (from 0). Without any signal in the batch the weights stay as they are."""
        batch = make_batch(groups, self._recipe, self._pad_id)
        if len(batch) == 0 or not bool(batch.mask.any()):
            return UpdateStats(loss=0.0, grad_norm=0.0, rows=0, trained_tokens=0, ess=1.0)
        self._set_learning_rate(step)
        self.optimizer.zero_grad(set_to_none=True)
        parts = [self._accumulate(part) for part in self._own_rows(batch).split(self._max_rows)]
        grad_norm = self._clip_gradients()
        self.optimizer.step()
        parts = self._parts_of_all_ranks(parts)
        return UpdateStats(
            loss=sum(loss for loss, _ in parts),
            grad_norm=grad_norm,
            rows=len(batch),
            trained_tokens=batch.token_ids.numel(),
            ess=effective_sample_size(torch.cat([ratios for _, ratios in parts])),
        )

    _gradient_scale = 1.0

    def _own_rows(self, batch: Batch) -> Batch:
        return batch

    def _parts_of_all_ranks(self, parts: list[Part]) -> list[Part]:
        return parts

    def _clip_gradients(self) -> float:
        """Returns the norm before clipping. Raises `RuntimeError` when it is not finite."""
        norm = torch.nn.utils.clip_grad_norm_(
            self._model.parameters(), self._recipe.optimizer.max_grad_norm, error_if_nonfinite=True
        )
        return float(norm)

    def _accumulate(self, batch: Batch) -> Part:
        """Adds a part's gradient. Returns its share of the loss and the ratios of its trained tokens."""
        logprobs = token_logprobs(self._model, batch.token_ids)
        losses = token_losses(self._recipe.loss, logprobs, batch.old_logprobs, batch.advantages, batch.mask)
        loss = (losses.sum(dim=1) * batch.weights).sum()
        (loss * self._gradient_scale).backward()
        ratios = (logprobs.detach() - batch.old_logprobs)[batch.mask].exp()
        return float(loss.detach()), ratios

    def _set_learning_rate(self, step: int) -> None:
        plan = self._recipe.optimizer
        share = min(1.0, (step + 1) / plan.warmup_steps) if plan.warmup_steps else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = plan.learning_rate * share

    def state(self) -> dict[str, Any]:
        return self.optimizer.state_dict()

    def load_state(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state)
