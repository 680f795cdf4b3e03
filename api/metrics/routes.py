from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.auth import Requires

router = APIRouter(tags=["health"])


@router.get("/metrics", dependencies=[Depends(Requires("read"))], response_class=Response)
async def metrics(request: Request) -> Response:
    """Prometheus metrics of this process. They need a token with the scope `read`."""
    state = request.app.state
    text = await state.metrics.read(state.sessions, state.broadcaster.n_streams)
    return Response(text, media_type=CONTENT_TYPE_LATEST)
