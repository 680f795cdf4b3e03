"""Tasks: where prompts come from and how an answer is graded."""

from __future__ import annotations

import random
from typing import Protocol

from rlcast.recipe_parts import ALPHABET, THINK_END, Arithmetic
from runners.trainer.grading import GradeAnswer
from runners.trainer.seeding import derived_seed
from runners.trainer.types import Prompt


class Task(Protocol):
    """Prompts in a fixed order and a grader. The held-out prompts are never among the training ones."""

    alphabet: str
    train_size: int
    fingerprint: str  # of the questions: a run must not go on with others

    def train_prompt(self, position: int, seed: int) -> Prompt:
        """The prompt at a position of the endless training order; every epoch has its own order."""
        ...

    def heldout_prompts(self) -> list[Prompt]: ...

    def warm_start_prompt(self, position: int) -> Prompt:
        """A question for supervised training; never a held-out one."""
        ...

    def worked_answer(self, prompt: Prompt) -> str:
        """What supervised training shows for a question: the thinking, if any, and the answer."""
        ...

    @property
    def grade(self) -> GradeAnswer:
        """1.0 for a right answer, 0.0 for a wrong or unparsable one. Is pickled to the grader's process."""
        ...


class ArithmeticTask:
    """`345+678=` with the answer `3201`: the sum, 1023, written from its last digit, as one adds on paper.

    Both numbers have exactly `digits` digits. The order lets each digit follow from those already written
    (arXiv 2307.03381 finds the same), so that a tiny model can learn the carry.

    A pair (a, b) has one id, so disjoint ids mean disjoint questions. Held-out and training ids are drawn
    together without replacement from the task's own seed: recipes with other sampling seeds are evaluated on
    the same questions.
    """

    def __init__(self, spec: Arithmetic) -> None:
        self.alphabet = ALPHABET if spec.thinking else ALPHABET[:-2]
        self._thinking = spec.thinking
        self._low = 10 ** (spec.digits - 1)
        self._span = 10**spec.digits - self._low
        self._seed = spec.seed
        draw = random.Random(derived_seed("arithmetic", spec.digits, spec.seed))
        ids = draw.sample(range(self._span**2), spec.heldout_prompts + spec.train_prompts)
        self._heldout_ids = ids[: spec.heldout_prompts]
        self._heldout = frozenset(self._heldout_ids)
        self._train_ids = ids[spec.heldout_prompts :]
        self.train_size = spec.train_prompts
        self.fingerprint = f"arithmetic {spec.digits} {spec.seed} {spec.train_prompts} {spec.heldout_prompts}"
        self._order: tuple[tuple[int, int], list[int]] | None = None

    def _prompt(self, prompt_id: int) -> Prompt:
        a, b = divmod(prompt_id, self._span)
        a, b = a + self._low, b + self._low
        return Prompt(id=prompt_id, text=f"{a}+{b}=", answer=str(a + b)[::-1])

    def train_prompt(self, position: int, seed: int) -> Prompt:
        epoch, index = divmod(position, self.train_size)
        if self._order is None or self._order[0] != (seed, epoch):
            order = list(self._train_ids)
            random.Random(derived_seed("order", seed, epoch)).shuffle(order)
            self._order = ((seed, epoch), order)
        return self._prompt(self._order[1][index])

    def heldout_prompts(self) -> list[Prompt]:
        return [self._prompt(prompt_id) for prompt_id in self._heldout_ids]

    def warm_start_prompt(self, position: int) -> Prompt:
        draw = random.Random(derived_seed("warm-start", self._seed, position))
        while (prompt_id := draw.randrange(self._span**2)) in self._heldout:
            pass
        return self._prompt(prompt_id)

    def worked_answer(self, prompt: Prompt) -> str:
        """With thinking `5+8=13,4+7+1=12,3+6+1=10>3201` for 345+678."""
        if not self._thinking:
            return prompt.answer
        a, b = (number[::-1] for number in prompt.text.rstrip("=").split("+"))
        columns, carry = [], 0
        for x, y in zip(a, b, strict=True):
            total = int(x) + int(y) + carry
            columns.append(f"{x}+{y}{'+1' if carry else ''}={total}")
            carry = total // 10
        return ",".join(columns) + THINK_END + prompt.answer

    def grade(self, prompt: Prompt, completion: str) -> float:
        """Exactly the digits of the answer: a missing, extra or foreign character makes it wrong.

        With thinking, the answer is what follows the first `>`; without any there is no answer.
        """
        if self._thinking:
            _, ended, completion = completion.partition(THINK_END)
            if not ended:
                return 0.0
        return float(completion == prompt.answer)
