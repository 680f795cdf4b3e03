"""Logging evaluations from a training loop: `rlcast.start_run(…)`, `run.log(…)`, `run.finish()`.

`Run` appends to a spool on disk (`folder.py`), a background thread (`sender.py`) delivers it
(`delivery.py`), and `rlcast sync` delivers what a dead process left behind.
"""
