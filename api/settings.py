"""Settings of the service, from the environment (prefix `RLCAST_`)."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

Seconds = Annotated[float, Field(gt=0)]


class Settings(BaseSettings):
    """`Settings()` reads `RLCAST_DATABASE_URL` and so on; the addresses may carry passwords."""

    model_config = SettingsConfigDict(env_prefix="RLCAST_", frozen=True, extra="ignore")

    database_url: SecretStr
    broker_url: SecretStr = SecretStr("redis://127.0.0.1:6379/0")
    data_dir: Path = Path(".rlcast")
    token_file: Path | None = None
    lease_s: Seconds = 90.0
    sweep_s: Seconds = 5.0
    #: A queued job whose message was sent this long ago and not claimed is sent again.
    resend_s: Seconds = 60.0
    relay_s: Seconds = 0.5
    events_poll_s: Seconds = 0.25
    #: How often workers say that they are there; after some beats missed they count as silent, then as gone.
    worker_beat_s: Seconds = 10.0
    worker_silent_s: Seconds = 45.0
    worker_gone_s: Seconds = 300.0
    #: A worker with a free slot that has not taken a job that fits for this long is not healthy.
    worker_idle_s: Seconds = 60.0
    #: Whether jobs may be commands of any kind, and not only recipes: their submitters can run anything then.
    allow_commands: bool = False
    max_attempts: Annotated[int, Field(ge=1, le=100)] = 3
    database_pool: Annotated[int, Field(ge=2, le=100)] = 10
    forecast_workers: Annotated[int, Field(ge=1, le=64)] = 1
    forecast_timeout_s: Seconds = 60.0
    log_json: bool = True

    @field_validator("database_url")
    @classmethod
    def _psycopg_driver(cls, url: SecretStr) -> SecretStr:
        value = url.get_secret_value()
        for plain in ("postgresql://", "postgres://"):
            if value.startswith(plain):
                return SecretStr(f"postgresql+psycopg://{value.removeprefix(plain)}")
        if not value.startswith("postgresql+psycopg://"):
            raise ValueError("must start with postgresql+psycopg://")
        return url

    @cached_property
    def token_path(self) -> Path:
        return self.token_file or self.data_dir / "token"
