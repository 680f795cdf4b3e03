"""Published recipes as presets, and the same recipes made small enough for two cores.

The values are those that the ScaleRL paper states (arXiv 2510.13786: §3, §4 and appendices A.3, A.16, A.17).
All recipes were run by its authors on one 8B model, with 16 samples a prompt, AdamW (5e-7, 100 warm-up steps,
eps 1e-15, weight decay 0.01), 12,288 tokens of thinking and 2,048 of answer, and interruptions at 10 to 12
thousand tokens; 7,400 steps are those of the run in its Figure 1. Where the paper is silent, this file says
so. The phrase that ends the thinking is the task's own.

    scalerl        §4. CISPO (cap 5: the paper finds 4, 5 and 8 alike), prompt average, batch-level
                   advantages, FP32 head, zero-variance filter, No-Positive-Resampling at 0.9, PipelineRL-8.
                   The number of visits before a prompt is dropped is ours (4).
    base           §3, start of the ablations. DAPO's clipping, sample average, prompt-level advantages,
                   PPO-off-policy-8, head in bfloat16, no filters.
    gspo           `base` with GSPO (A.17; bounds 3e-3 and 5e-3).
    grpo-deepseek  A.16. Symmetric clip 0.2, sample average, prompt-level advantages, PPO-off-policy-8.
    dapo-qwen2.5   A.16. Clip 0.2/0.26, prompt average, zero-variance prompts dropped, 80 prompts a step
                   instead of refilling, PPO-off-policy-8.
    magistral      A.16. As dapo-qwen2.5, with PipelineRL-8.
    minimax-m1     A.16. CISPO, FP32 head, prompt average, zero-variance prompts dropped, 80 prompts a step,
                   PPO-off-policy-8. The advantage's scale is not stated: prompt level, as in the others.
    loo-*          `scalerl` with one ingredient reverted (§4, Figure 7).
"""

from __future__ import annotations

from typing import Any

from rlcast.errors import InputError
from rlcast.recipe import Recipe

Config = dict[str, Any]

_COMMON: Config = {
    "steps": 7400,
    "task": {"thinking": True},
    "sampling": {"prompts_per_step": 48, "samples_per_prompt": 16, "max_new_tokens": 14_336},
    "length": {"kind": "interruption", "min_tokens": 10_000, "max_tokens": 12_000},
    "optimizer": {"learning_rate": 5e-7, "warmup_steps": 100, "eps": 1e-15, "weight_decay": 0.01},
    "evaluation": {"every_steps": 100, "samples_per_prompt": 16},
}
_BFLOAT16: Config = {"compute": "bfloat16", "fp32_head": False}
_FP32_HEAD: Config = {"compute": "bfloat16", "fp32_head": True}
_OFF_POLICY_8: Config = {"mode": "ppo-off-policy", "k": 8, "generator": "vllm"}
_PIPELINE_8: Config = {"mode": "pipeline-rl", "k": 8, "generator": "vllm"}
_DAPO: Config = {"kind": "dapo", "clip_low": 0.2, "clip_high": 0.26}
_CISPO: Config = {"kind": "cispo", "cispo_cap": 5.0, "floor": 0.0}

_SCALERL: Config = {
    "loss": _CISPO,
    "aggregation": "prompt",
    "advantage": {"scale": "batch"},
    "filters": {"zero_variance": True, "no_positive_resampling": {"pass_rate": 0.9, "min_visits": 4}},
    "precision": _FP32_HEAD,
    "pipeline": _PIPELINE_8,
}
_BASE: Config = {
    "loss": _DAPO,
    "aggregation": "sample",
    "advantage": {"scale": "prompt"},
    "filters": {"zero_variance": False},
    "precision": _BFLOAT16,
    "pipeline": _OFF_POLICY_8,
}
_DAPO_QWEN: Config = {
    **_BASE,
    "aggregation": "prompt",
    "filters": {"zero_variance": True},
    "sampling": {"prompts_per_step": 80, "samples_per_prompt": 16, "max_new_tokens": 14_336},
}
#: What each leave-one-out variant of `scalerl` changes.
_REVERTED: dict[str, Config] = {
    "loo-dapo": {"loss": _DAPO},
    "loo-fp32": {"precision": _BFLOAT16},
    "loo-lp": {"length": {"kind": "penalty", "max_tokens": 14_000, "cache_tokens": 2_000}},
    "loo-8op": {"pipeline": _OFF_POLICY_8},
    "loo-plan": {"advantage": {"scale": "prompt"}},
    "loo-savg": {"aggregation": "sample"},
    "loo-batch": {"filters": {**_SCALERL["filters"], "zero_variance": False}},
    "loo-npr": {"filters": {"zero_variance": True}},
}
_PRESETS: dict[str, Config] = {
    "scalerl": _SCALERL,
    "base": _BASE,
    "gspo": {**_BASE, "loss": {"kind": "gspo", "clip_low": 3e-3, "clip_high": 5e-3}},
    "grpo-deepseek": {**_BASE, "loss": {"kind": "grpo", "clip": 0.2}},
    "dapo-qwen2.5": _DAPO_QWEN,
    "magistral": {**_DAPO_QWEN, "pipeline": _PIPELINE_8},
    "minimax-m1": {**_DAPO_QWEN, "loss": _CISPO, "precision": _FP32_HEAD},
    **{name: {**_SCALERL, **change} for name, change in _REVERTED.items()},
}


def preset_names() -> list[str]:
    return list(_PRESETS)


def preset(name: str, tiny: bool = False) -> Recipe:
    """The recipe of that name; with `tiny`, its ingredients on a task and with sizes that two cores can do.

    Raises `InputError` for a name that does not exist.
    """
    if name not in _PRESETS:
        raise InputError(f"preset: no {name!r}; there are {', '.join(_PRESETS)}", field="preset")
    config: Config = {"name": f"tiny-{name}" if tiny else name, **_COMMON, **_PRESETS[name]}
    return Recipe.model_validate(_made_tiny(config) if tiny else config)


def _made_tiny(config: Config) -> Config:
    """Keeps every ingredient and shrinks sizes: tokens by about 500, the batch to two thirds, 300 steps.

    They sample with transformers, which is installed wherever the trainer is.

    The learning rate is that of a model of 0.34 M parameters, and there are few enough prompts that each is
    visited several times, without which No-Positive-Resampling would do nothing.
    """
    prompts = config["sampling"]["prompts_per_step"] * 2 // 3
    lengths = {
        "interruption": {"kind": "interruption", "min_tokens": 18, "max_tokens": 24},
        "penalty": {"kind": "penalty", "max_tokens": 30, "cache_tokens": 4},
    }
    return {
        **config,
        "steps": 300,
        "pipeline": {**config["pipeline"], "generator": "transformers"},
        "task": {"digits": 3, "thinking": True, "train_prompts": 2000},
        "sampling": {"prompts_per_step": prompts, "samples_per_prompt": 16, "max_new_tokens": 34},
        "length": lengths[config["length"]["kind"]],
        "optimizer": {**config["optimizer"], "learning_rate": 2e-4, "warmup_steps": 10},
        "evaluation": {"every_steps": 20, "samples_per_prompt": 4},
    }
