"""Static files: our own from `web/static`, plotly.js from the installed plotly wheel. Nothing is fetched."""

from __future__ import annotations

import functools
import gzip
import re
from importlib import metadata, resources
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.staticfiles import StaticFiles

STATIC = Path(__file__).parent / "static"
PLOTLY_PATH = f"/static/vendor/plotly-{metadata.version('plotly')}.min.js"

router = APIRouter(include_in_schema=False)


class _RevalidatedFiles(StaticFiles):
    """Our modules import each other by plain names, so browsers ask each time whether they changed."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        response.headers["Cache-Control"] = "no-cache"
        return response


@functools.cache
def plotly_js() -> tuple[bytes, bytes]:
    """plotly.js as the wheel carries it, plain and gzipped (4.8 MB and 1.4 MB), kept after the first use."""
    plain = resources.files("plotly").joinpath("package_data/plotly.min.js").read_bytes()
    return plain, gzip.compress(plain, 6, mtime=0)


@functools.cache
def map_style_ids() -> tuple[str, ...]:
    """Ids of `<style>` elements that plotly's bundled map library adds unless an element has that id.

    We draw no maps, and our policy forbids the style: pages carry an empty element with the id.
    """
    found = re.findall(rb'getElementById\("([0-9a-f]{64})"\)', plotly_js()[0])
    return tuple(dict.fromkeys(name.decode() for name in found))


@router.get(PLOTLY_PATH)
def vendor_plotly(request: Request) -> Response:
    """Its address holds the version, so that a browser may keep it for good."""
    plain, zipped = plotly_js()
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(zipped, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})
    return Response(plain, media_type="text/javascript", headers=headers)


def mount(app: FastAPI) -> None:
    app.include_router(router)
    app.mount("/static", _RevalidatedFiles(directory=STATIC), name="static")
