"""rlcast: forecasts for reinforcement-learning post-training, with honest uncertainty."""

__version__ = "0.1.0"
