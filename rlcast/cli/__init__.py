"""The `rlcast` command. Each command is a module here; this one ties them together."""

from __future__ import annotations

import sys

import typer
from typer.exceptions import TyperException

from rlcast import __version__
from rlcast.cli import (
    backtest,
    baseline,
    compare,
    demo,
    forecast,
    gate,
    imports,
    jobs,
    recipe,
    submit,
    sync,
    train,
    up,
    workers,
)
from rlcast.cli.output import console, print_error
from rlcast.errors import ExitCode, RlcastError

app = typer.Typer(
    name="rlcast",
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _show_version(value: bool) -> None:
    if value:
        console.print(f"rlcast {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Forecasts of reinforcement-learning post-training, with honest uncertainty.

    Start with `rlcast forecast FILE.csv` (no server needed), or `rlcast demo` for the whole path.
    """
    if context.invoked_subcommand is None:
        console.print(context.get_help())


app.command("forecast")(forecast.forecast_command)
app.command("compare")(compare.compare_command)
app.command("backtest")(backtest.backtest_command)
app.command("gate")(gate.gate_command)
app.add_typer(baseline.app, name="baseline")
app.command("import")(imports.import_command)
app.command("sync")(sync.sync_command)
app.command("submit")(submit.submit_command)
app.command("jobs")(jobs.jobs_command)
app.command("cancel")(jobs.cancel_command)
app.command("train")(train.train_command)
app.add_typer(recipe.app, name="recipe")
app.command("worker")(workers.worker_command)
app.add_typer(workers.app, name="workers")
app.command("up")(up.up_command)
app.command("demo")(demo.demo_command)


def main() -> None:
    """Runs the command; every error a user can cause is one line on stderr and a documented exit code."""
    try:
        code = app(standalone_mode=False, prog_name="rlcast")
    except typer.Abort:
        sys.exit(130)
    except TyperException as error:
        print_error(f"{error.format_message()} (see rlcast --help)")
        sys.exit(ExitCode.USAGE)
    except RlcastError as error:
        print_error(str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        print_error(
            f"internal error: {type(error).__name__}: {error} (run with RLCAST_DEBUG=1 for the traceback)"
        )
        _reraise_when_debugging()
        sys.exit(ExitCode.INTERNAL)
    sys.exit(code if isinstance(code, int) else 0)


def _reraise_when_debugging() -> None:
    import os

    if os.environ.get("RLCAST_DEBUG"):
        raise
