"""`python -m rlcast` is the `rlcast` command."""

from rlcast.cli import main

if __name__ == "__main__":
    main()
