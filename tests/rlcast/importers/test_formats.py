"""One small log of each other format, with numbers worked out by hand."""

from __future__ import annotations

import json

import pytest

from rlcast.errors import InputError
from rlcast.importers import read_logs


def lines(*rows: dict) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_generic_jsonl_by_preference_and_by_name(log, read_one):
    path = log(
        lines(
            {"step": 1, "loss": 2.0, "tokens": 100, "eval": {"accuracy": 0.25}, "odd": 0.5},
            {"step": 2, "loss": 1.0, "tokens": 200, "eval": {"accuracy": 0.5}, "odd": 0.75},
        ),
        "metrics.jsonl",
    )
    rows = read_one(path).rows
    assert (rows.run, rows.unit) == (path.parent.name, "tokens")
    assert (rows.compute, rows.pass_rate) == ([100.0, 200.0], [0.25, 0.5])
    assert read_one(path, y="odd").rows.pass_rate == [0.5, 0.75]
    by_loss = read_one(path, x="loss", unit="flops").rows
    assert (by_loss.unit, by_loss.compute) == ("flops", [2.0, 1.0])


def test_jsonl_as_the_service_gives_it(log, read_one):
    path = log(
        lines({"step": 4, "compute": {"gpu_hours": 2.5}, "pass_rate": 0.5, "n_prompts": 30}), "a.jsonl"
    )
    rows = read_one(path).rows
    assert (rows.unit, rows.compute, rows.n_prompts) == ("gpu_hours", [2.5], [30])


def test_several_runs_in_one_jsonl(log):
    path = log(
        lines({"run": "a", "step": 1, "pass_rate": 0.1}, {"run": "b", "step": 1, "pass_rate": 0.2}), "x.jsonl"
    )
    assert [(one.rows.run, one.rows.pass_rate) for one in read_logs([path])] == [("a", [0.1]), ("b", [0.2])]


def test_trl_reads_the_newest_checkpoint_and_spreads_the_mean_step_time(log, read_one):
    def state(last: int) -> str:
        history = []
        for step in range(10, last + 1, 10):
            history.append({"step": step, "reward": 1.5, "step_time": 18.0, "num_tokens": step * 1000})
            history.append(
                {"step": step, "eval_rewards/accuracy_reward/mean": step / 100, "eval_reward": 1.9}
            )
        return json.dumps({"global_step": last, "total_flos": 0, "log_history": history})

    log(state(10), "out/checkpoint-10/trainer_state.json")
    folder = log(state(30), "out/checkpoint-30/trainer_state.json").parents[1]
    found = read_one(folder, devices=2)
    assert found.rows.run == "out"
    assert found.rows.pass_rate == [0.1, 0.2, 0.3]
    # Ten steps of 18 s on two devices between rows.
    assert found.rows.compute == pytest.approx([0.1, 0.2, 0.3])
    assert found.rows.also["tokens"] == [10_000.0, 20_000.0, 30_000.0]
    assert "eval_reward" in dict(found.report.facts)["other scores"]


def test_several_reward_functions_must_be_told_apart(log, read_one):
    row = {"step": 1, "eval_rewards/f/mean": 0.5, "eval_rewards/g/mean": 0.25, "eval_reward": 0.75}
    path = log(json.dumps({"log_history": [row]}), "trainer_state.json")
    with pytest.raises(
        InputError, match=r"several reward functions.*eval_rewards/f/mean, eval_rewards/g/mean"
    ):
        read_one(path)
    assert read_one(path, y="eval_rewards/g/mean").rows.pass_rate == [0.25]


def test_a_sum_of_rewards_is_no_pass_rate_even_when_it_looks_like_one(log, read_one):
    path = log(json.dumps({"log_history": [{"step": 1, "eval_reward": 0.75}]}), "trainer_state.json")
    with pytest.raises(InputError, match=r"not a pass rate.*--range"):
        read_one(path)
    assert read_one(path, low=0.0, high=1.5).rows.pass_rate == [0.5]


def test_training_rewards_are_never_taken_for_a_held_out_score(log, read_one):
    path = log(json.dumps({"log_history": [{"step": 1, "reward": 0.75, "loss": 0.1}]}), "trainer_state.json")
    with pytest.raises(InputError, match=r"no held-out score.*--y.*reward is of the training batch"):
        read_one(path)


def test_ms_swift_steps_and_clock_are_text(log, read_one):
    path = log(
        lines(
            {"loss": 0.1, "global_step/max_steps": "5/20", "elapsed_time": "30m 0s"},
            {
                "eval_rewards/MathAccuracy/mean": 0.5,
                "global_step/max_steps": "10/20",
                "elapsed_time": "1h 0m 0s",
            },
        ),
        "logging.jsonl",
    )
    rows = read_one(path, devices=3).rows
    assert (rows.steps, rows.pass_rate, rows.compute) == ([10], [0.5], [3.0])


def test_ms_swift_console_with_numpy_and_nan(log, read_one):
    text = (
        "Train:  50%|#####     | 10/20 [01:00<01:00]\n"
        "{'loss': nan, 'epoch': 0.5, 'global_step/max_steps': '10/20', 'elapsed_time': '1h 0m 0s', "
        "'eval_rewards/acc/mean': np.float64(0.5)}\n"
        "{'loss': 0.1, 'epoch': 0.6, 'global_st\n"
    )
    found = read_one(log(text), devices=1)
    assert (found.rows.steps, found.rows.pass_rate, found.rows.compute) == ([10], [0.5], [1.0])


def test_prime_rl_writes_several_rows_a_step_from_several_processes(log, read_one):
    path = log(
        lines(
            {"step": 0, "time": 1e9, "eval/aime/all/solver/avg@8": 0.125, "eval/aime/policy_version": 0},
            {"step": 1, "time": 1e9 + 1, "progress/total_tokens": 500},
            {"step": 2, "time": 1e9 + 2, "progress/total_tokens": 900},
            {"step": 1, "time": 1e9 + 3, "time/step": 1800.0},
            {
                "step": 3,
                "time": 1e9 + 4,
                "eval/aime/all/solver/avg@8": 0.5,
                "eval/aime/effective/solver/avg@8": 0.75,
                "eval/aime/policy_version": 2,
            },
            {"step": 2, "time": 1e9 + 5, "time/step": 1800.0},
            {"step": 3, "time": 1e9 + 6, "time/step": 1800.0},
        ),
        "run7/metrics.jsonl",
    )
    found = read_one(path, devices=4)
    rows = found.rows
    assert (rows.run, rows.benchmark, rows.n_samples) == ("run7", "aime", [8, 8])
    assert (rows.steps, rows.pass_rate, rows.attempts) == ([0, 2], [0.125, 0.5], [1, 1])
    # The weights of version 2 were made in two half hours on four devices.
    assert rows.compute == [0.0, 4.0]


def test_prime_rl_resumed_trainer_and_orchestrator_are_one_new_attempt(log, read_one):
    def rows(step: int, score: float) -> tuple[dict, dict]:
        evaluated = {"step": step, "time": 5.0, "eval/a/avg@1": score, "eval/a/policy_version": step}
        return {"step": step, "time": 5.0, "time/step": 3600.0}, evaluated

    text = lines(
        *(r for s in (1, 2, 3) for r in rows(s, s / 10)), *(r for s in (2, 3) for r in rows(s, s / 5))
    )
    found = read_one(log(text, "m.jsonl"), devices=1, format_name="prime-rl")
    assert (found.rows.steps, found.rows.pass_rate) == ([1, 2, 3], [0.1, 0.4, 0.6])
    assert found.rows.attempts == [1, 2, 2]
    assert found.rows.compute == [1.0, 4.0, 5.0]


def test_slime_console(log, read_one):
    text = (
        "[2026-01-01 00:00:00] rollout.py:9 - eval 0: {'eval/aime': 0.25, 'eval/aime-truncated_ratio': 0.5}\n"
        "(RolloutManager pid=3) perf 0: {'perf/step_time': 900.0, 'rollout/response_len': 4}\n"
        "rollout 0: {'rollout/rewards': 0.0, 'rollout/raw_reward': 0.4}\n"
        "step 7: {'train/loss': 0.1, 'train/step': 7}\n"
        "perf 1: {'perf/step_time': 900.0}\n"
        "eval 1: {'eval/aime': 0.5, 'eval/aime-truncated_ratio': 0.25}\n"
    )
    found = read_one(log(text), devices=8)
    assert found.report.format == "slime console"
    assert (found.rows.benchmark, found.rows.steps, found.rows.pass_rate) == ("aime", [0, 1], [0.25, 0.5])
    assert found.rows.compute == [0.0, 4.0]


def test_slime_with_negative_rewards_needs_their_range(log, read_one):
    path = log("eval 1: {'eval/math': -0.5}\n")
    with pytest.raises(InputError, match=r"eval/math is -0.5.*unbounded reward.*--range LOW:HIGH"):
        read_one(path)
    assert read_one(path, low=-1.0, high=1.0).rows.pass_rate == [0.25]


@pytest.mark.parametrize(
    ("row", "benchmark"),
    [
        ({"eval/eval_math500_pass1": 0.5, "eval/eval_math500_pass8": 0.9, "eval/global_step": 3}, "math500"),
        ({"eval/pass_at_1": 0.5, "eval/scores": 5.0, "eval/stop_rate": 0.9, "training_step": 3}, None),
        ({"eval/all/avg_score": 0.5, "eval/gsm8k/avg_score": 0.75, "trainer/global_step": 3}, "all"),
        ({"validation/accuracy": 0.5, "train/reward": 0.75, "train/global_step": 3}, None),
    ],
    ids=["openrlhf", "open-instruct", "skyrl", "nemo"],
)
def test_rows_that_trackers_hold_for_other_trainers(log, read_one, row, benchmark):
    rows = read_one(log(lines(row), "history.jsonl")).rows
    assert (rows.steps, rows.pass_rate, rows.benchmark) == ([3], [0.5], benchmark)


def test_open_instruct_reward_alone_is_refused(log, read_one):
    with pytest.raises(InputError, match="open-instruct's mean reward, not a pass rate"):
        read_one(log(lines({"eval/scores": 5.0, "training_step": 1}), "history.jsonl"))


def test_harness_results_of_many_checkpoints_are_one_run(log, read_one):
    def light(score: float) -> str:
        results = {
            task: {"extractive_match": score, "extractive_match_stderr": 0.1}
            for task in ("custom|aime24|0", "all")
        }
        tasks = {"custom|aime24": {"effective_num_docs": 30}}
        return json.dumps(
            {"config_general": {"model_name": "m"}, "results": results, "config_tasks": tasks}, indent=1
        )

    paths = [log(light(0.3), "Exp1_100__results_2025.json"), log(light(0.2), "Exp1_50__results_2025.json")]
    rows = read_one(*paths).rows
    assert (rows.run, rows.benchmark, rows.n_prompts) == ("Exp1", "aime24", [30, 30])
    assert (rows.steps, rows.pass_rate) == ([50, 100], [0.2, 0.3])


def test_lm_eval_results_in_folders_of_checkpoints(log, read_one):
    for step, score in ((200, 0.5), (100, 0.25)):
        results = {
            "gsm8k": {
                "alias": "gsm8k",
                "exact_match,strict-match": score,
                "exact_match_stderr,strict-match": 0.01,
            }
        }
        data = {"results": results, "n-samples": {"gsm8k": {"original": 1319, "effective": 1319}}}
        path = log(json.dumps(data, indent=1), f"evals/checkpoint-{step}/results_2026.json")
    rows = read_one(path.parents[1]).rows
    assert (rows.run, rows.steps, rows.pass_rate) == ("evals", [100, 200], [0.25, 0.5])
    assert rows.n_prompts == [1319, 1319]


def test_a_result_without_a_step_is_refused(log, read_one):
    data = {"results": {"t": {"acc,none": 0.5}}, "n-samples": {}}
    with pytest.raises(InputError, match="nothing tells the training step"):
        read_one(log(json.dumps(data), "x/results.json"), format_name="harness")


def test_rollouts_and_optimiser_steps_side_by_side_are_no_restart(log, read_one):
    rows = []
    for rollout in range(4):
        rows += [{"train/step": 3 * rollout + i, "train/loss": 0.1, "_step": len(rows) + i} for i in range(3)]
        rows.append({"rollout/step": rollout, "perf/step_time": 1800.0, "_step": len(rows) + 9})
        rows.append({"eval/step": rollout, "eval/aime": rollout / 10, "_step": len(rows) + 9})
    found = read_one(log(lines(*rows), "history.jsonl"), devices=2)
    assert (found.rows.steps, found.rows.pass_rate) == ([0, 1, 2, 3], [0.0, 0.1, 0.2, 0.3])
    assert found.rows.compute == [1.0, 2.0, 3.0, 4.0]
    assert found.report.notes == []


def test_harness_results_of_two_tasks_in_two_folders(log, read_one):
    for task in ("math", "aime"):
        for step in (100, 200):
            data = {"results": {task: {"acc,none": step / 1000}}, "n-samples": {}}
            path = log(json.dumps(data, indent=1), f"evals/{task}/checkpoint-{step}/results_1.json")
    folder = path.parents[2]
    found = read_one(folder, y="eval/math/acc,none")
    assert (found.rows.steps, found.rows.pass_rate, found.rows.benchmark) == ([100, 200], [0.1, 0.2], "math")
    assert read_one(folder, y="eval/aime/acc,none").rows.steps == [100, 200]


def test_an_evaluation_of_the_first_weights_that_comes_late_cost_nothing(log, read_one):
    path = log(
        lines(
            {"step": 1, "time": 1.0, "time/step": 1800.0},
            {"step": 1, "time": 2.0, "eval/a/avg@4": 0.25, "eval/a/policy_version": 0},
            {"step": 2, "time": 3.0, "eval/a/avg@4": 0.5, "eval/a/policy_version": 1},
        ),
        "late/metrics.jsonl",
    )
    rows = read_one(path, devices=2).rows
    assert (rows.unit, rows.steps, rows.compute) == ("gpu_hours", [0, 1], [0.0, 1.0])


def test_compute_that_is_not_told_everywhere_is_not_the_axis(log, read_one):
    found = read_one(
        log(lines({"step": 5, "accuracy": 0.1}, {"step": 6, "tokens": 10, "accuracy": 0.2}), "a.jsonl")
    )
    assert (found.rows.unit, found.rows.compute) == ("steps", [5.0, 6.0])
    assert "tokens not told at every evaluation" in dict(found.report.facts)["compute"]


def test_pipelinerl_counts_samples_and_keeps_tests_in_a_stream_of_their_own(log, read_one):
    versions = (0, 512, 1024)
    train = [
        {"trainer_model_version": v, "time_since_start": v * 3.515625, "math/success_mean": 0.9}
        for v in versions
    ]
    tests = [
        {"trainer_model_version": v, "time_since_start": v * 3.515625, "math/success_mean": v / 2048}
        for v in versions
    ]
    log(lines(*train), "exp/streams/stats/0/0/0.jsonl")
    folder = log(lines(*tests), "exp/streams/stats_test/0/0/0.jsonl").parents[4]
    rows = read_one(folder, devices=4).rows
    assert (rows.run, rows.steps, rows.pass_rate) == ("exp", [0, 512, 1024], [0.0, 0.25, 0.5])
    # 512 samples take 1,800 s on four devices.
    assert (rows.unit, rows.compute) == ("gpu_hours", [0.0, 2.0, 4.0])
    assert rows.also["samples"] == [0.0, 512.0, 1024.0]


def test_of_two_evaluation_sets_the_one_with_more_points_is_taken_and_the_other_named(log, read_one):
    path = log(
        lines(
            {"step": 1, "val-core/aime/acc/mean@32": 0.1},
            {"step": 1, "val-core/math/acc/mean@4": 0.5},
            {"step": 2, "val-core/math/acc/mean@4": 0.75},
        ),
        "two.jsonl",
    )
    found = read_one(path)
    assert (found.rows.benchmark, found.rows.pass_rate) == ("math", [0.5, 0.75])
    assert dict(found.report.facts)["other scores"] == "val-core/aime/acc/mean@32 (choose one with --y)"
    assert read_one(path, y="val-core/aime/acc/mean@32").rows.benchmark == "aime"
