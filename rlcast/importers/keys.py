"""Which keys of a log are held-out scores, in order of preference.

Trainers put their name space into the key, so one list serves every format, also where a tracker
(W&B, TensorBoard, MLflow) hides which trainer wrote it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

#: rate: a share of solved problems. score: a mean reward that is a pass rate when rewards are 0 or 1.
#: reward: a sum of rewards, which means a pass rate only if the user says its bounds.
Kind = Literal["rate", "score", "reward"]


@dataclass(frozen=True)
class EvaluationKey:
    """A form of key. Groups: `bench` names the benchmark, `n` the samples per prompt.

    `one_of_many` marks keys of which several mean different things (reward functions, not data sets):
    one of them must be named when there are several.
    """

    pattern: re.Pattern[str]
    kind: Kind
    what: str
    one_of_many: bool = False


def _key(pattern: str, kind: Kind, what: str, one_of_many: bool = False) -> EvaluationKey:
    return EvaluationKey(re.compile(pattern), kind, what, one_of_many)


_AT = "(?:@|_at_|_)"  # verl writes "_at_" for MLflow, TensorBoard's writers turn "@" into "_"
_PREFIX = r"(?:eval|val|validation|test|heldout)[/_]"
_RATE_NAMES = (
    "pass_rate|passrate|pass@1|pass_at_1|pass_1|accuracy|acc|solve_rate|solved_frac|success_rate|success_mean"
)
#: lighteval's and lm-eval's metrics; lm-eval adds ",filter".
_HARNESS = (
    r"(?:extractive_match|exact_match|qem|em|prompt_level_strict_acc|(?:\w+_)?pass@1(?::[^/]*)?|acc|accuracy)"
    r"(?:,[^/]*)?"
)
_CORRECT = "acc|correct|pass|solve|answer|success|exact"

EVALUATION_KEYS: tuple[EvaluationKey, ...] = (
    _key(rf"^val-core/(?P<bench>.+)/acc/mean{_AT}(?P<n>\d+)$", "rate", "verl's accuracy"),
    _key(rf"^val-core/(?P<bench>.+)/(?:reward|score)/mean{_AT}(?P<n>\d+)$", "score", "verl's mean reward"),
    _key(rf"^val-core/(?P<bench>.+)/[^/]+/mean{_AT}(?P<n>\d+)$", "score", "verl's core score"),
    _key(rf"^val-aux/(?P<bench>.+)/(?:acc)/mean{_AT}(?P<n>\d+)$", "rate", "verl's accuracy"),
    _key(r"^val/test_score/(?P<bench>.+)$", "score", "verl's test score (before val-core)"),
    _key(r"^test_score/(?P<bench>.+)$", "score", "verl's test score (oldest form)"),
    _key(rf"^val-aux/(?P<bench>.+)/(?:reward|score)/mean{_AT}(?P<n>\d+)$", "score", "verl's mean reward"),
    _key(rf"^eval/(?P<bench>.+)/all/(?:[^/]+/)?avg{_AT}(?P<n>\d+)$", "score", "prime-rl, all rollouts"),
    _key(
        rf"^eval/(?P<bench>(?!.+/effective/).+)/avg{_AT}(?P<n>\d+)$",
        "score",
        "prime-rl, before all and effective",
    ),
    _key(
        rf"^eval/(?P<bench>.+)/effective/(?:[^/]+/)?avg{_AT}(?P<n>\d+)$", "score", "prime-rl, errors left out"
    ),
    _key(r"^eval/pass_at_1$", "rate", "pass@1"),
    _key(r"^(?:eval/)?eval_(?P<bench>.+)_pass1$", "score", "OpenRLHF's pass@1"),
    _key(rf"^eval/(?P<bench>[^/]+)-pass{_AT}1$", "rate", "slime's pass@1"),
    _key(rf"^{_PREFIX}(?P<bench>[^/]+)/(?:{_HARNESS})$", "rate", "an accuracy"),
    _key(rf"^{_PREFIX}(?P<bench>[^/]+)/(?:{_RATE_NAMES})$", "rate", "an accuracy"),
    _key(rf"^{_PREFIX}(?:{_RATE_NAMES})$", "rate", "an accuracy"),
    _key(r"^(?P<bench>[^/]+)/success_mean$", "rate", "a success rate"),
    _key(r"^(?:mean_)?(?:pass_rate|passrate|pass@1|accuracy|acc|solve_rate|solved_frac)$", "rate", "by name"),
    _key(r"^eval/(?P<bench>all)/avg_score$", "score", "SkyRL's mean score of all sets"),
    _key(r"^eval/(?P<bench>[^/]+)/avg_score$", "score", "SkyRL's mean score"),
    _key(
        rf"^(?:eval/|eval_)rewards/(?P<bench>[^/]*(?:{_CORRECT})[^/]*)(?:/mean)?$",
        "score",
        "reward function",
        True,
    ),
    _key(r"^(?:eval/|eval_)rewards/(?P<bench>[^/]+)(?:/mean)?$", "score", "reward function", True),
    _key(rf"^(?:{_PREFIX})?(?:score|exact_match)$", "score", "a mean score"),
    _key(r"^eval/scores$", "reward", "open-instruct's mean reward"),
    _key(r"^(?:eval/|eval_)(?:mean_)?reward$", "reward", "the sum of all reward functions"),
    _key(
        r"^eval/(?P<bench>(?!.*(?:step|rate$|norm|memory|size|samples|ppl|perplexity|epoch|loss|runtime|time|ratio|length|token|count|std|kl|entropy|num_"
        r"|per_second|version|rewards?|truncat|stop_rate|sequence|pass@|pass_at|avg@|_pass))[^/]+)$",
        "score",
        "slime's mean reward",
    ),
)

#: Keys that hold a score of the training batch: named in messages, never taken by themselves.
TRAINING_SCORE = re.compile(
    r"^(?:critic/(?:score|rewards)/mean|reward|rewards/.+|train/rewards?.*|rollout/raw_reward|score|"
    r".*solve_all|actor/reward.*|reward_avg|reward/.+)$"
)


@dataclass(frozen=True)
class KeyMatch:
    """How a key was understood. `rank` is its place in the order of preference, best 0."""

    key: str
    rank: int
    kind: Kind
    what: str
    benchmark: str | None = None
    n_samples: int | None = None
    one_of_many: bool = False


def match_key(key: str) -> KeyMatch | None:
    """How `key` would be read as a held-out score; None when it is not one."""
    for rank, form in enumerate(EVALUATION_KEYS):
        found = form.pattern.match(key)
        if found:
            groups = found.groupdict()
            n = groups.get("n")
            return KeyMatch(
                key, rank, form.kind, form.what, groups.get("bench"), int(n) if n else None, form.one_of_many
            )
    return None


def chosen_by_hand(key: str) -> KeyMatch:
    """The key that the user named: whatever it is, it is a rate in their eyes."""
    known = match_key(key)
    if known is None:
        return KeyMatch(key, 0, "score", "named with --y")
    return KeyMatch(key, 0, "score", "named with --y", known.benchmark, known.n_samples)
