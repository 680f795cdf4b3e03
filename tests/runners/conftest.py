from stack_fixtures import rlcast

__all__ = ["rlcast"]
