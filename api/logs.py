"""Structured logs: one JSON object a line, with the request's id. Tokens and bodies never get in."""

from __future__ import annotations

import logging
import logging.config
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from api.context import request_id

_SECRET_KEYS = ("token", "authorization", "password", "secret", "cookie", "dsn")


def _add_request_id(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    if (current := request_id.get()) is not None:
        event.setdefault("request_id", current)
    return event


def _hide_secrets(logger: WrappedLogger, name: str, event: EventDict) -> EventDict:
    for key in event:
        if any(word in key.lower() for word in _SECRET_KEYS):
            event[key] = "…"
    return event


def configure_logs(as_json: bool) -> None:
    """Sends the standard library's loggers and structlog's through one format on standard error."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _add_request_id,
        _hide_secrets,
    ]
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer()
    formatter = {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": shared,
        "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    }
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"all": formatter},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "all"}},
            "loggers": {"api": {"handlers": ["stderr"], "level": "INFO", "propagate": False}},
        }
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
