from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from api.auth import Requires
from api.database import SessionDep
from api.fields import Cursor, Label, Limit, Page, PathName
from api.recipes import service
from api.recipes.schemas import RecipeCreate, RecipeRead

router = APIRouter(prefix="/recipes", tags=["recipes"])


@router.post(
    "",
    status_code=201,
    dependencies=[Depends(Requires("ingest"))],
    responses={200: {"model": RecipeRead, "description": "It existed already."}},
)
async def create_recipe(body: RecipeCreate, session: SessionDep, response: Response) -> RecipeRead:
    """Stores a version. The same name and content again answers 200 with the stored one."""
    recipe, is_new = await service.get_or_create(session, body.name, body.config, body.description)
    response.status_code = 201 if is_new else 200
    return RecipeRead.model_validate(recipe)


@router.get("", dependencies=[Depends(Requires("read"))])
async def list_recipes(
    session: SessionDep,
    name: Annotated[Label | None, Query()] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[RecipeRead]:
    """Recipes, newest first."""
    recipes, next_cursor = await service.page(session, name=name, limit=limit, cursor=cursor)
    return Page(items=[RecipeRead.model_validate(recipe) for recipe in recipes], next_cursor=next_cursor)


@router.get("/{recipe}", dependencies=[Depends(Requires("read"))])
async def get_recipe(recipe: PathName, session: SessionDep) -> RecipeRead:
    """A recipe by id, or the newest version of a name."""
    return RecipeRead.model_validate(await service.get(session, recipe))
