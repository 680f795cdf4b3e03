"""The callbacks under the real trainers of TRL and transformers, on a model of a few thousand parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doc_blocks import blocks_of

pytestmark = pytest.mark.torch
pytest.importorskip("trl", reason="the callbacks' libraries are not installed: pip install 'rlcast[trl]'")

WORDS = ["<pad>", "<eos>", "zero", "one", "two", "three", "plus", "is"]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>")
    words = Tokenizer(vocabulary)
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")


def small_model() -> Any:
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    heads = {"num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 64}
    ids = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=len(WORDS), **sizes, **heads, **ids))


def says_one(completions: list[str], **_: Any) -> list[float]:
    return [float(text.split()[:1] == ["one"]) for text in completions]


@pytest.fixture
def where(service: Any, tmp_path: Path) -> dict[str, Any]:
    return {
        "recipe": "grpo",
        "benchmark": "held-out",
        "url": service.url,
        "token": service.token,
        "folder": tmp_path / "logged",
    }


@pytest.fixture
def grpo(tokenizer: Any, tmp_path: Path) -> Callable[..., Any]:
    """A GRPO trainer that evaluates before the first and after each of three steps."""

    def make(callback: Any) -> Any:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer

        config = GRPOConfig(
            output_dir=str(tmp_path / "out"),
            run_name="grpo-1",
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            num_generations=4,
            num_generations_eval=2,
            max_completion_length=3,
            max_steps=3,
            eval_strategy="steps",
            eval_steps=1,
            eval_on_start=True,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            seed=5,
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
        )
        return GRPOTrainer(
            model=small_model(),
            reward_funcs=[says_one],
            args=config,
            train_dataset=Dataset.from_dict({"prompt": ["one plus one is", "one plus two is"]}),
            eval_dataset=Dataset.from_dict({"prompt": ["two plus one is", "zero plus one is"] * 3}),
            processing_class=tokenizer,
            callbacks=[callback] if callback else [],
        )

    return make


def test_grpos_evaluations_arrive_with_their_compute(service, grpo, where):
    from rlcast.integrations.trl import RlcastCallback

    callback = RlcastCallback("says_one", devices=8, **where)
    trainer = grpo(callback)
    trainer.train()
    trainer.evaluate()  # once more after the last step: the point is there already
    callback.run.finish()
    logged = {
        entry["step"]: entry["eval_rewards/says_one/mean"]
        for entry in reversed(trainer.state.log_history)
        if "eval_rewards/says_one/mean" in entry
    }
    items = service.api("GET", "/runs/grpo-1/evaluations")["items"]
    assert {item["step"]: item["pass_rate"] for item in items} == pytest.approx(logged)
    assert list(logged) == [3, 2, 1, 0]
    assert {(item["n_prompts"], item["n_samples"]) for item in items} == {(6, 2)}
    hours = [item["compute"]["gpu_hours"] for item in items]
    assert hours == sorted(set(hours))
    run = service.api("GET", "/runs/grpo-1")
    assert (run["recipe"]["name"], run["seed"], run["n_evaluations"]) == ("grpo", 5, 4)


def test_the_block_of_the_docs(service, grpo, tokenizer, monkeypatch, tmp_path):
    """As printed, with the names that the page leaves to its reader."""
    from trl import GRPOTrainer

    monkeypatch.setenv("RLCAST_URL", service.url)
    monkeypatch.setenv("RLCAST_TOKEN", service.token)
    monkeypatch.setenv("RLCAST_HOME", str(tmp_path / "home"))
    [block] = [b for b in blocks_of("logging.md") if b.heading == "TRL"]
    like = grpo(None)

    def accuracy_reward(completions: list[str], **_: Any) -> list[float]:
        return says_one(completions)

    names = {"model": small_model(), "accuracy_reward": accuracy_reward, "config": like.args}
    names |= {"train_set": like.train_dataset, "held_out": like.eval_dataset}
    names["GRPOTrainer"] = functools.partial(GRPOTrainer, processing_class=tokenizer)
    exec(block.text, names)
    names["trainer"].pop_callback(names["RlcastCallback"]).run.finish()
    assert service.api("GET", "/runs/trl-1")["n_evaluations"] == 4


def test_a_misspelt_metric_is_said_once_with_those_that_exist(service, grpo, where, caplog):
    from rlcast.integrations.trl import RlcastCallback

    callback = RlcastCallback("says_two", **where)
    grpo(callback).train()
    callback.run.finish()
    assert caplog.text.count("has no 'eval_rewards/says_two/mean'") == 1
    assert "eval_rewards/says_one/mean" in caplog.text
    assert service.api("GET", "/runs")["items"] == []


def test_any_trainer_of_transformers_can_be_followed(service, tokenizer, where, tmp_path):
    from datasets import Dataset
    from transformers import Trainer, TrainingArguments

    from rlcast.integrations.transformers import RlcastCallback

    rows = Dataset.from_dict({"input_ids": [[2, 6, 3, 7, 3]] * 4, "labels": [[2, 6, 3, 7, 3]] * 4})
    arguments = TrainingArguments(
        output_dir=str(tmp_path / "out"),
        max_steps=2,
        eval_strategy="steps",
        eval_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )

    def metrics(prediction: Any) -> dict[str, float]:
        right = prediction.predictions[:, :-1].argmax(-1) == prediction.label_ids[:, 1:]
        return {"accuracy": float(right.mean())}

    callback = RlcastCallback("eval_accuracy", name="plain", prompts=4, unit="cpu_hours", **where)
    trainer = Trainer(
        model=small_model(),
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows,
        compute_metrics=metrics,
        callbacks=[callback],
    )
    trainer.train()
    callback.run.finish()
    logged = {e["step"]: e["eval_accuracy"] for e in trainer.state.log_history if "eval_accuracy" in e}
    items = service.api("GET", "/runs/plain/evaluations")["items"]
    assert {item["step"]: item["pass_rate"] for item in items} == pytest.approx(logged)
    assert [item["n_prompts"] for item in items] == [4, 4]


def test_evaluation_time_is_no_training_compute(service, grpo, where, monkeypatch):
    """A clock that only evaluation moves: nothing of it is counted."""
    from types import SimpleNamespace

    from rlcast.integrations.trl import RlcastCallback
    from rlcast.tracking import meter

    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(meter, "time", SimpleNamespace(monotonic=lambda: now.s))
    callback = RlcastCallback("says_one", **where)
    trainer = grpo(callback)
    step = trainer.prediction_step

    def slow(*arguments: Any, **more: Any) -> Any:
        now.s += 3600.0
        return step(*arguments, **more)

    trainer.prediction_step = slow
    trainer.train()
    callback.run.finish()
    items = service.api("GET", "/runs/grpo-1/evaluations")["items"]
    assert [item["compute"]["gpu_hours"] for item in items] == [0.0] * 4
