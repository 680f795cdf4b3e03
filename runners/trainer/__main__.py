"""`python -m runners.trainer --recipe RECIPE.yaml --out DIR [--resume]`

Exit codes: 0 finished, 1 failed, 2 the recipe or the folder cannot be used, 143 stopped by a signal after a
checkpoint.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from pydantic import ValidationError

from rlcast.errors import InputError
from rlcast.recipe import Recipe, recipe_errors
from runners.trainer.events import EventLog
from runners.trainer.stopping import StopFlag, Stopped
from runners.trainer.torchrun import torchrun_rank

EXIT_FINISHED, EXIT_FAILED, EXIT_USAGE, EXIT_STOPPED = 0, 1, 2, 143

log = logging.getLogger("runners.trainer")


def main(argv: list[str] | None = None) -> int:
    arguments = _parse(argv)
    try:
        recipe = _read_recipe(arguments.recipe)
        if not torchrun_rank():
            _check_folder(arguments.out, arguments.resume, recipe)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_USAGE
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    # Before torch is imported: its threads are taken when it loads.
    os.environ["OMP_NUM_THREADS"] = str(recipe.devices.threads)
    if torchrun_rank():
        from runners.trainer.ranks import follow_torchrun

        follow_torchrun(recipe)
        return EXIT_FINISHED
    return _train(recipe, arguments.out)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="runners.trainer", description="Trains one recipe in one folder.")
    parser.add_argument("--recipe", type=Path, required=True, help="YAML file")
    parser.add_argument("--out", type=Path, required=True, help="folder for events and checkpoints")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint, if any")
    return parser.parse_args(argv)


def _read_recipe(path: Path) -> Recipe:
    try:
        return Recipe.from_yaml(path)
    except ValidationError as invalid:
        errors = recipe_errors(invalid)
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InputError(f"{errors[0]['field']}: {errors[0]['message']}{more}") from invalid


def _check_folder(out: Path, resume: bool, recipe: Recipe) -> None:
    """A folder belongs to one recipe, and an existing run is never overwritten."""
    marker = out / "recipe.yaml"
    if marker.exists():
        if not resume:
            raise InputError(f"--out: {out} already holds a run: add --resume, or choose another folder")
        if _content_hash(marker) != recipe.content_hash:
            raise InputError(f"--recipe: {out} holds a run of a different recipe: choose another folder")
        return
    out.mkdir(parents=True, exist_ok=True)
    temporary = out / ".recipe.yaml.tmp"
    temporary.write_text(recipe.to_yaml(), encoding="utf-8")
    temporary.rename(marker)


def _content_hash(file: Path) -> str | None:
    """None for a recipe that this version does not understand, hence does not run."""
    try:
        return Recipe.from_yaml(file).content_hash
    except (InputError, ValidationError):
        return None


def _train(recipe: Recipe, out: Path) -> int:
    stop = StopFlag()
    stop.listen()  # before the seconds that importing torch takes
    from runners.trainer.trainer import Trainer

    events = EventLog(out / "events.jsonl")
    if events.is_finished():
        log.info("already finished: nothing to do")
        return EXIT_FINISHED
    try:
        pass_rate = Trainer(recipe, out, events, stop).run()
    except Stopped:
        log.info("stopped on request")
        return EXIT_STOPPED
    except InputError as error:
        events.append("failed", {"error": str(error)})
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return EXIT_USAGE
    except Exception as error:
        log.exception("training failed")
        events.append("failed", {"error": _one_line(error)})
        return EXIT_FAILED
    events.append("finished", {"step": recipe.steps, "pass_rate": pass_rate})
    log.info("finished: held-out pass rate %.3f", pass_rate)
    return EXIT_FINISHED


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


if __name__ == "__main__":
    sys.exit(main())
