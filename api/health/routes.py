"""Liveness and readiness, for those who start and stop the service; these two need no token."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError

import rlcast
from api.auth import Requires
from api.health import service

probes = APIRouter(tags=["health"])
router = APIRouter(tags=["health"])


class Live(BaseModel):
    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """`broker: down` is no reason to refuse points: jobs wait in the database until it is back."""

    status: Literal["ok", "degraded", "down"]
    database: Literal["ok", "down"]
    migrations: Literal["ok", "behind", "unknown"]
    broker: Literal["ok", "down"]


class Info(BaseModel):
    version: str
    schema_revision: str | None


@probes.get("/livez")
async def livez() -> Live:
    """The process answers. Looks at nothing else."""
    return Live()


@probes.get("/readyz", responses={503: {"model": Ready}})
async def readyz(request: Request) -> JSONResponse:
    """200 when points can be stored: the database answers and holds this version's schema."""
    broker_up, migrations = await asyncio.gather(request.app.state.publisher.ping(), _migrations(request))
    database: Literal["ok", "down"] = "down" if migrations == "unknown" else "ok"
    broker: Literal["ok", "down"] = "ok" if broker_up else "down"
    status: Literal["ok", "degraded", "down"] = "ok" if broker == "ok" else "degraded"
    if migrations != "ok":
        status = "down"
    ready = Ready(status=status, database=database, migrations=migrations, broker=broker)
    return JSONResponse(ready.model_dump(), 503 if status == "down" else 200)


async def _migrations(request: Request) -> Literal["ok", "behind", "unknown"]:
    try:
        revision = await _revision(request)
    except (TimeoutError, SQLAlchemyError):
        return "unknown"
    return "ok" if revision == service.code_revision() else "behind"


async def _revision(request: Request) -> str | None:
    async with asyncio.timeout(5):
        return await service.schema_revision(request.app.state.sessions)


@router.get("/info", dependencies=[Depends(Requires("read"))])
async def info(request: Request) -> Info:
    """Versions of the code and of the database's schema."""
    try:
        revision = await _revision(request)
    except (TimeoutError, SQLAlchemyError):
        revision = None
    return Info(version=rlcast.__version__, schema_revision=revision)
