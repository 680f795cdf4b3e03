"""`rlcast submit`: a recipe, a job file, or a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rlcast.cli.jobs import stop_words, wait_for_end
from rlcast.cli.output import Json, console, print_json
from rlcast.cli.recipes import Overrides, read_recipe
from rlcast.errors import ExitCode, InputError

#: Keys of a job file beside those of a command.
_JOB_KEYS = ("name", "resources", "queue", "max_hours", "max_gpu_hours")
_COMMAND_KEYS = ("results_file", "benchmark", "compute_unit", "model", "task", "seed")


def submit_command(
    words: Annotated[
        list[str], typer.Argument(metavar="RECIPE.yaml | JOB.yaml | -- PROGRAM …", help="What to run.")
    ],
    command: Annotated[
        bool, typer.Option("--command", help="Run the program after `--`, with its arguments as they stand.")
    ] = False,
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", help="With --command: a text file to put beside it (repeatable)."),
    ] = None,
    results: Annotated[
        str | None,
        typer.Option("--results", metavar="FILE", help="With --command: read evaluations from this file."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the run (default: made from the recipe's).")
    ] = None,
    overrides: Overrides = None,
    gpus: Annotated[int | None, typer.Option("--gpus", min=0, help="GPUs that it needs.")] = None,
    memory_gib: Annotated[float | None, typer.Option("--memory-gib", help="Memory that it needs.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY=VALUE", help="Label that its worker must have (repeatable)."),
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Queue to wait in (default: by GPUs).")] = None,
    max_hours: Annotated[float | None, typer.Option("--max-hours", help="Stop it after so long.")] = None,
    max_gpu_hours: Annotated[
        float | None, typer.Option("--max-gpu-hours", help="Stop it when it has held so much.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the end; exit 1 if it failed or was cancelled.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Queue a recipe, or with `--command` any training program, for a runner.

    A program reports evaluations as lines of JSON with `step` and `pass_rate` on its standard output.
    """
    from rlcast.client import Client

    body = _command(words, file, results) if command else _from_file(words, overrides)
    asked = {"gpus": gpus, "memory_gib": memory_gib, "labels": _labels(label)}
    resources = {key: value for key, value in asked.items() if value}
    if resources or gpus is not None:
        body["resources"] = {**(body.get("resources") or {}), **resources}
    given = {"name": name, "queue": queue, "max_hours": max_hours, "max_gpu_hours": max_gpu_hours}
    body |= {key: value for key, value in given.items() if value is not None}
    with Client() as client:
        job = client.submit(**body)
        if not json_output:
            console.print(f"job {job['id']} for run {job['run_name']}: {job['state']}", markup=False)
        if wait:
            job = wait_for_end(client, job["id"])
        if json_output:
            print_json(job)
        elif wait:
            reason = job.get("error") or stop_words(job)
            console.print(f"{job['state']}{': ' + reason if reason else ''}", markup=False)
    if wait and job["state"] not in ("finished", "stopped"):
        raise typer.Exit(ExitCode.GATE_FAILED)


def _command(argv: list[str], files: list[Path] | None, results: str | None) -> dict[str, Any]:
    command: dict[str, Any] = {"argv": argv, "files": _read_files(files or [])}
    return {"command": {**command, **({"results_file": results} if results else {})}}


def _from_file(words: list[str], overrides: list[str] | None) -> dict[str, Any]:
    """What a recipe's or a job's file asks for."""
    from rlcast.recipe import load_mapping

    if len(words) != 1:
        raise InputError("give one recipe or job file, or --command -- PROGRAM …", "RECIPE.yaml")
    path = Path(words[0])
    mapping = load_mapping(path)
    if "command" in mapping:
        return _command_job(path, mapping)
    if "recipe" in mapping:
        return _recipe_job(path, mapping, overrides)
    return {"recipe": read_recipe(path, overrides).model_dump(mode="json")}


def _command_job(path: Path, mapping: dict[str, Any]) -> dict[str, Any]:
    _check_keys(path, mapping, ("command", "recipe", "files", *_COMMAND_KEYS, *_JOB_KEYS))
    argv = mapping["command"]
    if not isinstance(argv, list) or not all(isinstance(word, str | int | float) for word in argv):
        raise InputError(f"{path}: command: write it as a list, such as [python, train.py]", "command")
    files = [path.parent / str(file) for file in mapping.get("files") or ()]
    command = {"argv": [str(word) for word in argv], "files": _read_files(files)}
    command |= {key: mapping[key] for key in ("recipe", *_COMMAND_KEYS) if key in mapping}
    return {"command": command, **{key: mapping[key] for key in _JOB_KEYS if key in mapping}}


def _recipe_job(path: Path, mapping: dict[str, Any], overrides: list[str] | None) -> dict[str, Any]:
    _check_keys(path, mapping, ("recipe", *_JOB_KEYS))
    if not isinstance(mapping["recipe"], str):
        raise InputError(f"{path}: recipe: name the recipe's file, such as recipe.yaml", "recipe")
    recipe = read_recipe(path.parent / mapping["recipe"], overrides)
    job = {key: mapping[key] for key in _JOB_KEYS if key in mapping}
    return {"recipe": recipe.model_dump(mode="json"), **job}


def _check_keys(path: Path, mapping: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(set(mapping) - set(known))
    if unknown:
        raise InputError(f"{path}: {unknown[0]}: unknown key; a job has {', '.join(known)}", unknown[0])


def _read_files(paths: list[Path]) -> dict[str, str]:
    """The files' text by their names: they go to the job's folder on its worker."""
    texts = {}
    for path in paths:
        try:
            texts[path.name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            words = getattr(error, "strerror", None) or "not text in UTF-8"
            raise InputError(f"--file {path}: {words}; give a text file that is there", "--file") from None
    return texts


def _labels(words: list[str] | None) -> dict[str, str]:
    labels = {}
    for word in words or ():
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise InputError(f"--label {word}: write it as KEY=VALUE, as in --label zone=a", "--label")
        labels[key] = value
    return labels
