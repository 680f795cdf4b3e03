"""verl's console and file logger, and a console inside a notebook."""

from __future__ import annotations

import json

import pytest

from rlcast.errors import InputError

RAY = "\x1b[36m(TaskRunner pid=7)\x1b[0m "
CONFIG = f"{RAY}{{'trainer': {{'n_gpus_per_node': 8,\n{RAY}              'nnodes': 2}}}}\n"


def line(step: int, *parts: str) -> str:
    return RAY + " - ".join([f"step:{step}", *parts]) + "\n"


def test_a_console_with_colours_prefixes_and_other_output(log, read_one):
    text = (
        CONFIG
        + "Let's think step by step: step:3 - not a row\n"
        + line(0, "val-core/openai/gsm8k/acc/mean@4:0.25", "val-core/openai/gsm8k/reward/mean@4:0.3")
        + line(
            1,
            "actor/pg_loss:-0.01",
            "training/global_step:1",
            "timing_s/step:90.0",
            "perf/total_num_tokens:1000",
        )
        + line(
            2,
            "val-core/openai/gsm8k/acc/mean@4:np.float64(0.5)",
            "val-core/openai/gsm8k/best@4/mean:0.9",
            "timing_s/testing:500.0",
            "timing_s/step:135.0",
            "perf/total_num_tokens:3000",
        )
    )
    found = read_one(log(text))
    rows = found.rows
    assert (rows.run, rows.unit, rows.benchmark) == ("run", "gpu_hours", "openai/gsm8k")
    assert (rows.steps, rows.pass_rate, rows.n_samples) == ([0, 2], [0.25, 0.5], [4, 4])
    # 16 devices for 90 + 135 seconds, evaluation not among them; before the first step nothing was spent.
    assert rows.compute == [0.0, pytest.approx(16 * 225 / 3600)]
    assert rows.also["tokens"] == [0.0, 4000.0]
    facts = dict(found.report.facts)
    assert "val-core/openai/gsm8k/acc/mean@4" in facts["score"]
    assert "val-core/openai/gsm8k/reward/mean@4" in facts["other scores"]
    assert "16 devices (n_gpus_per_node x nnodes in the log)" in facts["compute"]


@pytest.mark.parametrize(
    "key",
    ["val-core/math/acc/mean@1", "val-core/math/reward/mean@1", "val/test_score/math", "test_score/math"],
)
def test_keys_of_all_generations(log, read_one, key):
    rows = read_one(log(line(1, f"{key}:0.125", "timing_s/step:3600")), devices=1).rows
    assert (rows.benchmark, rows.pass_rate, rows.compute) == ("math", [0.125], [1.0])


def test_old_logs_have_parts_of_a_step_and_testing_is_no_part(log, read_one):
    parts = ["timing/gen:10", "timing/ref:2", "timing/values:2", "timing/adv:1", "timing/update_critic:9"]
    text = line(0, "val/test_score/m:0.1", *parts, "timing/update_actor:12", "timing/testing:77")
    rows = read_one(log(text), devices=100).rows
    assert rows.compute == [pytest.approx(100 * 36 / 3600)]


def test_without_devices_time_is_not_made_into_gpu_hours(log, read_one):
    text = line(1, "val/test_score/m:0.1", "timing_s/step:9.0") + line(
        2, "val/test_score/m:0.2", "timing_s/step:9.0"
    )
    found = read_one(log(text))
    assert (found.rows.unit, found.rows.compute) == ("steps", [1.0, 2.0])
    assert "--devices" in dict(found.report.facts)["compute"]
    with pytest.raises(InputError, match="--devices N to get gpu_hours"):
        read_one(log(text), unit="gpu_hours")


def test_a_cut_end_is_not_read_as_a_smaller_number(log, read_one):
    whole = line(1, "val/test_score/m:0.10", "timing_s/step:9.0")
    cut = line(2, "timing_s/step:9.0", "val/test_score/m:0.187").rstrip("\n")[:-2]
    assert read_one(log(whole + cut)).rows.steps == [1]


def test_a_damaged_line_costs_only_itself(log, read_one):
    text = line(1, "val/test_score/m:0.1", "timing_s/ste(WorkerDict pid=9) hello") + line(
        2, "val/test_score/m:0.2"
    )
    found = read_one(log(text))
    assert found.rows.pass_rate == [0.1, 0.2]
    assert any("1 of 2 lines are broken" in note and "line 1" in note for note in found.report.notes)


def test_a_restart_wins_and_what_the_dead_attempt_spent_still_counts(log, read_one):
    def step(n: int, score: float | None = None) -> str:
        parts = ["timing_s/step:3600"]
        return line(n, *([f"val/test_score/m:{score}"] if score is not None else []), *parts)

    first = step(1) + step(2, 0.2) + step(3) + step(4, 0.9) + step(5)
    second = step(3) + step(4, 0.4)
    found = read_one(log(first + second), devices=1)
    assert (found.rows.steps, found.rows.pass_rate) == ([2, 4], [0.2, 0.4])
    # Steps 1 to 5 of the first attempt and 3 to 4 of the second ran: 7 hours.
    assert found.rows.compute == [2.0, 7.0]
    assert found.rows.attempts == [1, 2]
    [said] = found.report.notes
    assert "began again at step 3" in said
    assert "1 evaluation of abandoned attempts" in said


def test_a_notebook_holds_the_console_in_its_outputs(log, read_one):
    text = line(9, "val/test_score/openai/gsm8k:0.25", "timing_s/step:36.0")
    source = [
        "!python -m verl.trainer.main_ppo \\\n",
        " trainer.n_gpus_per_node=4 \\\n",
        " trainer.nnodes=1\n",
    ]
    cells = [
        {"cell_type": "markdown", "source": ["step:1 - val/test_score/x:0.9"]},
        {
            "cell_type": "code",
            "source": source,
            "outputs": [{"output_type": "stream", "text": text.splitlines(True)}],
        },
    ]
    path = log(json.dumps({"cells": cells, "nbformat": 4, "metadata": {}}), "training.ipynb")
    rows = read_one(path).rows
    assert (rows.run, rows.steps, rows.compute) == ("training", [9], [pytest.approx(0.04)])


def test_the_file_logger_and_its_attempts_in_one_folder(log, read_one):
    def row(step: int, score: float) -> str:
        return (
            json.dumps({"step": step, "data": {"val-core/m/acc/mean@1": score, "timing_s/step": 1800}}) + "\n"
        )

    log(row(1, 0.1) + row(2, 0.2) + row(3, 0.3), "exp/metrics-20260101.jsonl")
    path = log(row(2, 0.25) + row(3, 0.35) + '{"step": 4, "da', "exp/metrics-20260102.jsonl").parent
    found = read_one(path, devices=2)
    assert found.rows.run == "exp"
    assert (found.rows.steps, found.rows.pass_rate) == ([1, 2, 3], [0.1, 0.25, 0.35])
    assert found.rows.compute == [1.0, 4.0, 5.0]
    assert any("1 of 6 lines are broken" in note for note in found.report.notes)
