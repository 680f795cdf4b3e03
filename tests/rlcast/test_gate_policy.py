"""`[gate]` of rlcast.toml: the command line wins, and a mistake is named with its remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlcast.errors import InputError
from rlcast.gates.policy import resolve


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> None:
    Path("rlcast.toml").write_text(text)


def test_without_a_file_the_options_and_defaults_count():
    policy = resolve({"candidate": "new", "baseline": "old", "margin": None})
    assert (policy.candidate, policy.baseline, policy.margin, policy.confidence) == ("new", "old", 0.02, 0.95)
    assert (policy.on_inconclusive, policy.config) == ("fail", None)


def test_the_file_counts_and_options_win():
    write('[gate]\nbaseline = 0.6\nmargin = 0.05\nconfidence = 0.9\non_inconclusive = "neutral"\nseed = 3\n')
    policy = resolve({"candidate": "new", "margin": 0.01})
    assert (policy.baseline, policy.margin, policy.confidence) == (0.6, 0.01, 0.9)
    assert (policy.on_inconclusive, policy.seed, policy.config) == ("neutral", 3, Path("rlcast.toml"))


def test_another_file_can_be_named():
    Path("strict.toml").write_text("[gate]\nmargin = 0\n")
    write("[gate]\nmargin = 0.5\n")
    assert resolve({"candidate": "a", "baseline": "b"}, Path("strict.toml")).margin == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[gate]\nmargim = 0.1\n", "'margim' is no key in [gate] that is known; did you mean 'margin'?"),
        ("[gate]\non-inconclusive = 'pass'\n", "did you mean 'on_inconclusive'?"),
        ("[gates]\nmargin = 0.1\n", "'gates' is no table that is known; did you mean 'gate'?"),
        ("[gate]\nzzz = 1\n", "known: candidate, baseline, margin"),
        ("[gate]\nmargin = '0.1'\n", "rlcast.toml: [gate] margin is '0.1'; give a number"),
        ("[gate]\nmargin = true\n", "[gate] margin is True; give a number"),
        ("[gate]\nmargin = nan\n", "[gate] margin is nan; give a number"),
        ("[gate]\nmargin = 2\n", "rlcast.toml: [gate] margin is 2; give a pass-rate difference from 0 to 1"),
        ("[gate]\nconfidence = 0.5\n", "[gate] confidence is 0.5; give a probability above 0.5"),
        ("[gate]\nbaseline = 55\n", "[gate] baseline is 55; an A is a pass rate from 0 to 1"),
        ("[gate]\non_inconclusive = 'skip'\n", "is 'skip'; use one of fail, pass, neutral"),
        ("[gate]\nseed = 1.5\n", "[gate] seed is 1.5; give a whole number"),
        ("gate = 1\n", "write [gate] above its keys"),
        ("[gate\n", "no valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named(text, words):
    write(text)
    with pytest.raises(InputError) as caught:
        resolve({"candidate": "new", "baseline": None if "baseline" in text else "old"})
    assert words in str(caught.value)


def test_a_mistake_on_the_command_line_is_called_by_the_option():
    write("[gate]\nmargin = 0.5\n")
    with pytest.raises(InputError, match=r"^--margin is 2;"):
        resolve({"candidate": "new", "baseline": "old", "margin": 2.0})
    with pytest.raises(InputError, match="--candidate is missing; give it, or candidate in"):
        resolve({"baseline": "old"})
    with pytest.raises(InputError, match=r"no-such-file\.toml cannot be read"):
        resolve({"candidate": "new", "baseline": "old"}, Path("no-such-file.toml"))
