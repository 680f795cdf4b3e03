from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from api.auth import Requires
from api.database import SessionDep
from api.fields import ComputeUnit, Cursor, Label, Limit, Page, PathName
from api.idempotency import OnceDep
from api.runs import service
from api.runs.schemas import RunCreate, RunRead

router = APIRouter(prefix="/runs", tags=["runs"])


@router.post(
    "",
    status_code=201,
    dependencies=[Depends(Requires("ingest"))],
    responses={200: {"model": RunRead, "description": "It existed already."}},
)
async def create_run(body: RunCreate, session: SessionDep, response: Response, once: OnceDep) -> RunRead:
    """Makes a run. The same request again answers 200; the same name with other fields 409."""
    run, is_new = await service.create(session, body)
    response.status_code = 201 if is_new else 200
    answer = RunRead.model_validate(run)
    await once.keep(answer)
    return answer


@router.get("", dependencies=[Depends(Requires("read"))])
async def list_runs(
    session: SessionDep,
    recipe: Annotated[Label | None, Query(description="Id or name.")] = None,
    benchmark: Annotated[Label | None, Query()] = None,
    compute_unit: ComputeUnit | None = None,
    sort: service.RunSort = "-created_at",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Page[RunRead]:
    """Runs, newest first unless `sort` says otherwise."""
    runs, next_cursor = await service.page(
        session,
        recipe=recipe,
        benchmark=benchmark,
        compute_unit=compute_unit,
        sort=sort,
        limit=limit,
        cursor=cursor,
    )
    return Page(items=[RunRead.model_validate(run) for run in runs], next_cursor=next_cursor)


@router.get("/{run}", dependencies=[Depends(Requires("read"))])
async def get_run(run: PathName, session: SessionDep) -> RunRead:
    return RunRead.model_validate(await service.get(session, run))
