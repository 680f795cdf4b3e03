"""Rules of recipes: same name and same content is the same version; other content is the next one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

import rlcast.recipe
from api.errors import NotFound
from api.lookup import parse_id
from api.paging import Sort, fetch_page
from api.recipes.models import Recipe


def content_hash(config: dict[str, Any] | None) -> str:
    """SHA-256 (hex) of what affects training.

    Repeats with other seeds belong to one version, so the seed is left out. A configuration of another
    trainer is hashed as canonical JSON, whole.
    """
    try:
        recipe = rlcast.recipe.Recipe.model_validate(config)
    except ValidationError:
        canonical = json.dumps(config, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()
    return recipe.model_copy(update={"seed": 0}).content_hash


async def get_or_create(
    session: AsyncSession, name: str, config: dict[str, Any] | None, description: str | None = None
) -> tuple[Recipe, bool]:
    """The version of recipe `name` with this content, and whether it is new."""
    digest = content_hash(config)
    # Two requests for one name take turns, so that versions have no gaps and no doubles.
    await session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"recipe:{name}", 0))))
    found = await session.scalar(select(Recipe).where(Recipe.name == name, Recipe.content_hash == digest))
    if found is not None:
        return found, False
    newest = await session.scalar(select(func.max(Recipe.version)).where(Recipe.name == name))
    recipe = Recipe(
        name=name,
        version=(newest or 0) + 1,
        content_hash=digest,
        config=config,
        description=description,
    )
    session.add(recipe)
    await session.flush()
    await session.refresh(recipe)
    return recipe, True


async def find(session: AsyncSession, recipe: str) -> Recipe | None:
    """A recipe by id, or the newest version of a name."""
    query = select(Recipe).where(Recipe.name == recipe).order_by(Recipe.version.desc()).limit(1)
    if (recipe_id := parse_id(recipe)) is not None and (found := await session.get(Recipe, recipe_id)):
        return found
    return await session.scalar(query)


async def get(session: AsyncSession, recipe: str) -> Recipe:
    """As `find`; raises `NotFound`."""
    found = await find(session, recipe)
    if found is None:
        raise NotFound.named("recipe", recipe)
    return found


async def newest_evaluated(session: AsyncSession, name: str) -> Recipe | None:
    """The newest version of a name with a run that has evaluations."""
    from api.runs.models import Run  # runs know recipes; this one question goes the other way

    query = select(Recipe).where(Recipe.name == name).order_by(Recipe.version.desc()).limit(1)
    has_points = select(Run.id).where(Run.recipe_id == Recipe.id, Run.n_evaluations > 0)
    return await session.scalar(query.where(has_points.exists()))


async def page(
    session: AsyncSession,
    *,
    name: str | None = None,
    limit: int = 100,
    cursor: str | None = None,
) -> tuple[Sequence[Recipe], str | None]:
    """Recipes, newest first, and the cursor of the next page."""
    query = select(Recipe)
    if name is not None:
        query = query.where(Recipe.name == name)
    return await fetch_page(session, query, Sort(Recipe.created_at), Recipe.id, limit, cursor)
