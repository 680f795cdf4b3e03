"""The whole stack as a user starts it: see tests/stack_fixtures.py."""

from stack_fixtures import rlcast, small_recipe, start_up

__all__ = ["rlcast", "small_recipe", "start_up"]
