"""The tasks that a recipe can train on and be evaluated on, as data.

A recipe may come from somebody else, so it names neither a path nor code that the host has not allowed: a
JSONL task is a file name inside the folder `RLCAST_TASKS` of the host that trains, and a Python task must
lie in a package that `RLCAST_TASK_PACKAGES` lists there.
"""

from __future__ import annotations

import difflib
from typing import Annotated, Literal

from pydantic import Field, field_validator

from rlcast.recipe_parts import Arithmetic, Part, PositiveFloat, PositiveInt

#: The generators of reasoning-gym 0.1.25. Kept here because the service checks recipes without that library.
_GYM_NAMES = """
    ab acre advanced_geometry aiw arc_1d arc_agi base_conversion basic_arithmetic bf binary_alternation
    binary_matrix bitwise_arithmetic boxnet caesar_cipher calendar_arithmetic chain_sum circuit_logic
    codeio coin_flip color_cube_rotation complex_arithmetic composite count_bits count_primes countdown
    course_schedule cryptarithm decimal_arithmetic decimal_chain_sum dice emoji_mystery
    family_relationships figlet_font fraction_simplification futoshiki game_of_life game_of_life_halting
    gcd graph_color group_anagrams gsm_symbolic intermediate_integration isomorphic_strings jugs kakurasu
    knight_swap knights_knaves largest_island lcm leg_counting letter_counting letter_jumble
    list_functions mahjong_puzzle manipulate_matrix maze mini_sudoku modulo_grid n_queens needle_haystack
    number_filtering number_format number_sequence number_sorting palindrome_generation
    palindrome_partitioning path_star polynomial_equations polynomial_multiplication pool_matrix
    power_function prime_factorization products propositional_logic puzzle24 quantum_lock ransom_note
    rearc rectangle_count rotate_matrix rotten_oranges rubiks_cube rush_hour self_reference
    sentence_reordering shortest_path simple_equations simple_geometry simple_integration sokoban
    spell_backward spiral_matrix string_insertion string_manipulation string_splitting string_synthesis
    sudoku survo syllogism time_intervals tower_of_hanoi tsumego word_ladder word_sequence_reversal
    word_sorting zebra_puzzles
"""
REASONING_GYM = tuple(_GYM_NAMES.split())


class ListedTask(Part):
    """What the tasks with a list of questions share. `seed` draws the held-out ones, which never train."""

    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    heldout_prompts: PositiveInt = 200
    grader_timeout_s: PositiveFloat = 10.0


class ReasoningGym(ListedTask):
    """A generator of the reasoning-gym library with its own `options`, graded by its own scorer.

    An answer is right when it gets the full score. Questions that the generator makes twice count once.
    """

    kind: Literal["reasoning-gym"]
    generator: str
    options: dict[str, bool | int | float | str] = Field(default={}, max_length=50)
    train_prompts: PositiveInt = 5_000

    @field_validator("generator")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in REASONING_GYM:
            near = difflib.get_close_matches(name, REASONING_GYM, n=1, cutoff=0.4)
            hint = f"did you mean `{near[0]}`?" if near else "see the gallery of reasoning-gym"
            raise ValueError(f"reasoning-gym has no generator {name!r}; {hint}")
        return name

    @field_validator("options")
    @classmethod
    def _ours_are_not_options(cls, options: dict[str, object]) -> dict[str, object]:
        for name in ("seed", "size"):
            if name in options:
                raise ValueError(
                    f"{name} is not an option here: give task.seed, train_prompts, heldout_prompts"
                )
        return options


class JsonLines(ListedTask):
    """Questions from a file with one `{"prompt": …, "answer": …}` a line, graded by math-verify.

    `file` is a name inside the host's folder `RLCAST_TASKS`. A completion is right when the last expression
    in it equals the answer mathematically; an answer that is no formula must be repeated exactly.
    """

    kind: Literal["jsonl"]
    file: Annotated[str, Field(max_length=200, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*\.jsonl$")]


class PythonTask(ListedTask):
    """A function that returns the questions and their grader; see docs/trainer.md.

    `entry_point` is `package.module:function`, in a package that the host's `RLCAST_TASK_PACKAGES` lists.
    """

    kind: Literal["python"]
    entry_point: Annotated[
        str, Field(max_length=300, pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")
    ]


TaskSpec = Annotated[Arithmetic | ReasoningGym | JsonLines | PythonTask, Field(discriminator="kind")]


class Benchmark(Part):
    """Another task that is evaluated beside the recipe's own, on its held-out prompts. Never trained on."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    task: TaskSpec
