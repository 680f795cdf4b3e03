"""Alembic: the only way that the schema changes."""

from __future__ import annotations

from pathlib import Path

from alembic.config import Config


def configuration(database_url: str) -> Config:
    """Alembic's configuration for one database, without an ini file."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    config.attributes["database_url"] = database_url
    return config
