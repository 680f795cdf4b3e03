"""The whole stack as a user starts it: see tests/stack_fixtures.py."""

from stack_fixtures import rlcast, start_up

__all__ = ["rlcast", "start_up"]
