"""`python -m migrations upgrade|downgrade|current|check [REVISION]` on the database of `RLCAST_DATABASE_URL`.

`python -m migrations revision "why"` writes a new migration from the difference between models and database.
"""

from __future__ import annotations

import argparse
import os
import sys

from alembic import command
from alembic.util import CommandError

from migrations import configuration


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m migrations", description=__doc__)
    parser.add_argument("action", choices=("upgrade", "downgrade", "current", "check", "revision"))
    parser.add_argument(
        "revision", nargs="?", help="default: head (upgrade), -1 (downgrade); of `revision` its message"
    )
    arguments = parser.parse_args()
    url = os.environ.get("RLCAST_DATABASE_URL")
    if not url:
        print("RLCAST_DATABASE_URL is not set; give the database's address", file=sys.stderr)  # noqa: T201
        return 2
    config = configuration(url)
    try:
        if arguments.action == "upgrade":
            command.upgrade(config, arguments.revision or "head")
        elif arguments.action == "downgrade":
            command.downgrade(config, arguments.revision or "-1")
        elif arguments.action == "revision":
            command.revision(config, message=arguments.revision, autogenerate=True)
        elif arguments.action == "check":
            command.check(config)
        else:
            command.current(config, verbose=True)
    except CommandError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
