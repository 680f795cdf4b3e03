"""Random numbers as a function of names and counters, so that a resumed run draws what it would have drawn.

No generator state has to be saved: the sampler's position and the step are the state. No torch here: the
grader's process draws nothing but imports the tasks.
"""

from __future__ import annotations

import hashlib


def derived_seed(*names: object) -> int:
    """A 63-bit seed from any printable names, e.g. `derived_seed(recipe.seed, "sampling", step)`."""
    digest = hashlib.sha256("/".join(str(name) for name in names).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
