"""Rules of runs: a name is made once; the same request again finds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from api.database import new_id
from api.errors import Conflict, NotFound
from api.events import service as events
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.recipes import service as recipes
from api.recipes.models import Recipe
from api.runs.models import Run
from api.runs.schemas import RunCreate

RunSort = Literal["created_at", "-created_at", "name", "-name"]
_SORTS = {"created_at": Run.created_at, "name": Run.name}


async def create(session: AsyncSession, fields: RunCreate) -> tuple[Run, bool]:
    """Makes the run, or finds the one with the same name and fields; says which.

    Raises `Conflict` when the name is taken by a run with other fields.
    """
    recipe = await recipes.find(session, fields.recipe)
    if recipe is None:
        recipe, _ = await recipes.get_or_create(session, fields.recipe, None)
    run = await insert_new(session, recipe, fields)
    if run is not None:
        return run, True
    existing = await get(session, fields.name)
    different = _differences(existing, recipe, fields)
    if different:
        raise Conflict(
            f"a run named {fields.name!r} exists with another {different[0]}; choose another name",
            code="run_exists",
            errors=[(field, "differs from the run that has this name") for field in different],
        )
    return existing, False


async def insert_new(session: AsyncSession, recipe: Recipe, fields: RunCreate) -> Run | None:
    """Makes the run; None when its name is taken, also by a request that is still being answered."""
    values = {"id": new_id(), "recipe_id": recipe.id, **fields.model_dump(exclude={"recipe"})}
    statement = insert(Run).values(values).on_conflict_do_nothing(index_elements=["name"]).returning(Run.id)
    run_id = await session.scalar(statement)
    if run_id is None:
        return None
    events.append(session, "run.created", {"run_id": str(run_id), "run": fields.name}, run_id=run_id)
    return await session.get_one(Run, run_id)


def _differences(run: Run, recipe: Recipe, fields: RunCreate) -> list[str]:
    asked = fields.model_dump(exclude={"recipe", "name"})
    different = [field for field, value in asked.items() if getattr(run, field) != value]
    same_recipe = run.recipe.id == recipe.id or (
        run.recipe.name == recipe.name and parse_id(fields.recipe) is None
    )
    return different if same_recipe else ["recipe", *different]


async def find(session: AsyncSession, run: str) -> Run | None:
    """A run by id or by name."""
    if (run_id := parse_id(run)) is not None and (found := await session.get(Run, run_id)):
        return found
    return await session.scalar(select(Run).where(Run.name == run))


async def get(session: AsyncSession, run: str) -> Run:
    """As `find`; raises `NotFound`."""
    found = await find(session, run)
    if found is None:
        raise NotFound.named("run", run)
    return found


async def of_recipe(session: AsyncSession, recipe: Recipe) -> Sequence[Run]:
    """The runs of one version of a recipe that have evaluations, oldest first."""
    query = select(Run).where(Run.recipe_id == recipe.id, Run.n_evaluations > 0)
    return (await session.scalars(query.order_by(Run.created_at, Run.id))).all()


async def page(
    session: AsyncSession,
    *,
    recipe: str | None = None,
    benchmark: str | None = None,
    compute_unit: str | None = None,
    sort: RunSort = "-created_at",
    limit: int = 100,
    cursor: str | None = None,
) -> tuple[Sequence[Run], str | None]:
    """Runs that match all filters, and the cursor of the next page. `recipe` is an id or a name."""
    query = select(Run)
    if recipe is not None:
        recipe_id = parse_id(recipe)
        query = query.join(Run.recipe.of_type(Recipe))
        query = query.where((Recipe.name == recipe) | (Recipe.id == recipe_id if recipe_id else False))
    if benchmark is not None:
        query = query.where(Run.benchmark == benchmark)
    if compute_unit is not None:
        query = query.where(Run.compute_unit == compute_unit)
    order = Sort(_SORTS[sort.removeprefix("-")], descending=sort.startswith("-"))
    return await fetch_page(session, query, order, Run.id, limit, cursor)
