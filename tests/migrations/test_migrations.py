from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from alembic.script import ScriptDirectory

from api.health.service import SCHEMA_REVISION
from migrations import configuration


def migrate(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "migrations", *arguments],
        env={**os.environ, "RLCAST_DATABASE_URL": url},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def sql(database_url: str) -> Callable[..., list[Any]]:
    def run(statement: str) -> list[Any]:
        with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    return run


def revisions(url: str) -> list[str]:
    script = ScriptDirectory.from_config(configuration(url))
    return [revision.revision for revision in script.walk_revisions()]


def test_there_is_one_head_and_the_code_names_it(database_url: str) -> None:
    heads = ScriptDirectory.from_config(configuration(database_url)).get_heads()
    assert heads == [SCHEMA_REVISION]


def test_models_and_schema_agree(database_url: str) -> None:
    checked = migrate(database_url, "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_schema_goes_down_and_up_again(database_url: str, sql: Callable[..., Any]) -> None:
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
    before = sql(tables)
    for _ in revisions(database_url):
        down = migrate(database_url, "downgrade")
        assert down.returncode == 0, down.stderr
    assert sql(tables) == [("alembic_version",)]
    up = migrate(database_url, "upgrade")
    assert up.returncode == 0, up.stderr
    assert sql(tables) == before
    assert migrate(database_url, "check").returncode == 0
    assert SCHEMA_REVISION in migrate(database_url, "current").stdout


def test_an_upgrade_of_a_current_database_changes_nothing(database_url: str) -> None:
    assert migrate(database_url, "upgrade").returncode == 0


def test_starts_at_once_take_turns(database_url: str, sql: Callable[..., Any]) -> None:
    migrate(database_url, "downgrade", "base")
    environment = {**os.environ, "RLCAST_DATABASE_URL": database_url}
    command = [sys.executable, "-m", "migrations", "upgrade"]
    both = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert sql("SELECT version_num FROM alembic_version") == [(SCHEMA_REVISION,)]


def test_without_a_database_it_says_so() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "RLCAST_DATABASE_URL"}
    done = subprocess.run(
        [sys.executable, "-m", "migrations", "upgrade"], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.strip()) == (
        2,
        "RLCAST_DATABASE_URL is not set; give the database's address",
    )


def test_data_of_the_first_schema_survives_every_step(database_url: str, sql: Callable[..., Any]) -> None:
    """Rows of each table of the first schema are read back the same after going up and down."""
    assert migrate(database_url, "downgrade", "0001").returncode == 0
    recipe, run, job = (f"00000000-0000-7000-8000-00000000000{i}" for i in (1, 2, 3))
    sql(f"INSERT INTO recipes VALUES ('r', 1, 'h', '{{\"lr\": 1e-3}}', NULL, '{recipe}', now())")
    sql(f"""INSERT INTO runs (name, recipe_id, benchmark, compute_unit, tags, n_evaluations, id)
            VALUES ('run-1', '{recipe}', 'b', 'gpu_hours', '{{}}', 1, '{run}')""")
    sql(f"""INSERT INTO evaluations (run_id, benchmark, step, attempt, compute, pass_rate, solved)
            VALUES ('{run}', 'b', 3, 1, '{{"gpu_hours": 1.5}}', 0.5, '{{1,0}}')""")
    sql(f"""INSERT INTO jobs (name, run_id, recipe_id, config, max_attempts, id)
            VALUES ('run-1', '{run}', '{recipe}', '{{}}', 3, '{job}')""")
    sql(f"INSERT INTO outbox (job_id, attempt) VALUES ('{job}', 1)")
    sql(f"INSERT INTO events (kind, run_id, data) VALUES ('run.created', '{run}', '{{}}')")
    tables = ("recipes", "runs", "evaluations", "jobs", "outbox", "events")

    def rows() -> list[dict[str, Any]]:
        """The one row of each table."""
        return [sql(f"SELECT row_to_json(t) FROM {table} t")[0][0] for table in tables]

    before = rows()
    assert migrate(database_url, "upgrade").returncode == 0
    for old, new in zip(before, rows(), strict=True):  # a newer schema may add columns
        assert {key: new[key] for key in old} == old
    assert migrate(database_url, "downgrade", "0001").returncode == 0
    assert rows() == before


def test_stopped_jobs_and_workers_go_down_to_what_older_code_knows(
    database_url: str, sql: Callable[..., Any]
) -> None:
    recipe, run, job, worker = (f"00000000-0000-7000-8000-00000000000{i}" for i in (1, 2, 3, 4))
    sql(f"INSERT INTO recipes VALUES ('r', 1, 'h', NULL, NULL, '{recipe}', now())")
    sql(f"""INSERT INTO runs (name, recipe_id, benchmark, compute_unit, tags, id)
            VALUES ('run-1', '{recipe}', 'b', 'gpu_hours', '{{}}', '{run}')""")
    sql(f"""INSERT INTO workers (name, hostname, devices, cpus, memory_gib, slots, versions, labels, queues,
                                 last_heartbeat_at, id)
            VALUES ('w', 'h', '[]', 1, 1, 1, '{{}}', '{{}}', '["cpu"]', now(), '{worker}')""")
    sql(f"""INSERT INTO jobs (name, run_id, recipe_id, config, max_attempts, id, worker_id, state,
                              stop_reason, created_at)
            VALUES ('run-1', '{run}', '{recipe}', '{{}}', 3, '{job}', '{worker}', 'stopped', 'max_hours',
                    '2026-01-02T03:04:05Z')""")
    assert migrate(database_url, "downgrade", "0003").returncode == 0
    assert sql("SELECT state, error FROM jobs") == [("cancelled", "stopped: max_hours")]
    assert migrate(database_url, "upgrade").returncode == 0
    assert sql("SELECT queued_at = created_at, queue, resources FROM jobs") == [(True, "cpu", {})]
    assert sql("SELECT count(*) FROM workers") == [(0,)]
