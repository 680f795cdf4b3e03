"""Tables that are logs: sparse scores in percent, W&B's exports, Parquet."""

from __future__ import annotations

import pandas
import pytest

from rlcast.errors import InputError
from rlcast.importers import Options, read_logs

LOG = (
    "step,total_steps,reward_avg,eval_acc\n1,3,0.5,15.5\n2,3,0.1,\n1,9,0.2,\n2,9,0.3,46\n3,9,0.3,\n4,9,,50\n"
)


def test_a_training_table_with_sparse_scores_in_percent_and_a_restart(log, read_one):
    path = log(LOG, "metrics.csv")
    with pytest.raises(
        InputError, match="eval_acc is 46, outside 0 to 1; if it is in percent, pass --percent"
    ):
        read_one(path)
    found = read_one(path, low=0.0, high=100.0)
    assert (found.rows.unit, found.rows.steps, found.rows.pass_rate) == ("steps", [2, 4], [0.46, 0.5])
    assert "in percent" in dict(found.report.facts)["score"]
    assert any("began again at step 1" in note for note in found.report.notes)


def test_a_table_with_compute_is_read_as_a_curve(log, read_one):
    found = read_one(log("run,gpu_hours,reward\na,1,-1\na,2,0\n", "c.csv"), y="reward", low=-1.0, high=1.0)
    assert (found.rows.run, found.rows.unit, found.rows.pass_rate) == ("a", "gpu_hours", [0.0, 0.5])


def test_unsorted_steps_are_sorted_not_taken_for_a_restart(log, read_one):
    found = read_one(log("step,accuracy\n30,0.3\n10,0.1\n20,0.2\n", "u.csv"))
    assert (found.rows.steps, found.rows.pass_rate, found.report.notes) == ([10, 20, 30], [0.1, 0.2, 0.3], [])


def test_scores_that_are_not_numbers_are_left_out_and_counted(log, read_one):
    found = read_one(log("step,accuracy\n1,nan\n2,0.2\n", "n.csv"))
    assert found.rows.steps == [2]
    assert found.report.notes == ["1 score left out: not a finite number"]


def test_windows_text(log, read_one):
    text = "step,accuracy\r\n1,0.1\r\n2,0.2\r\n"
    for name, data in (("bom.csv", "\ufeff" + text), ("utf16.csv", text.encode("utf-16"))):
        assert read_one(log(data, name)).rows.pass_rate == [0.1, 0.2]


def test_wandb_chart_export_holds_a_column_a_run(log):
    text = (
        '"Step","fast - eval/acc","fast - eval/acc__MIN","fast - eval/acc__MAX","slow - eval/acc"\n'
        '"10","0.25","0.2","0.3",""\n"20","0.5","0.4","0.6","0.125"\n'
    )
    fast, slow = read_logs([log(text, "wandb_export.csv")])
    assert (fast.rows.run, fast.rows.steps, fast.rows.pass_rate) == ("fast", [10, 20], [0.25, 0.5])
    assert (slow.rows.run, slow.rows.steps, slow.rows.pass_rate) == ("slow", [20], [0.125])


def test_parquet_as_log_and_as_curve(tmp_path):
    path = tmp_path / "log.parquet"
    pandas.DataFrame(
        {"_step": [1, 2], "eval/accuracy": [None, 0.5], "_runtime": [1800.0, 3600.0]}
    ).to_parquet(path)
    [found] = read_logs([path], options=Options(devices=2))
    assert (found.rows.steps, found.rows.pass_rate, found.rows.compute) == ([2], [0.5], [2.0])
    pandas.DataFrame({"run": ["a"], "flops": [1e20], "pass_rate": [0.5]}).to_parquet(path)
    [found] = read_logs([path])
    assert (found.rows.run, found.rows.unit, found.rows.compute) == ("a", "flops", [1e20])
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match="not a Parquet file"):
        read_logs([path])


def test_a_log_with_a_counter_of_tokens(log, read_one):
    found = read_one(log("step,eval_acc,tokens\n1,,100\n2,0.5,250\n3,,400\n", "t.csv"))
    assert (found.rows.steps, found.rows.unit, found.rows.compute) == ([2], "tokens", [250.0])
