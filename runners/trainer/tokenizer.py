"""A character-level tokenizer, made on the spot: tiny models need no downloaded vocabulary."""

from __future__ import annotations

from collections.abc import Sequence


class CharTokenizer:
    """One token a character. Ids 0, 1, 2 are padding, begin and end of sequence."""

    pad_id = 0
    bos_id = 1
    eos_id = 2

    def __init__(self, alphabet: str) -> None:
        self.alphabet = alphabet
        self._id_of = {character: i + 3 for i, character in enumerate(alphabet)}

    @property
    def vocab_size(self) -> int:
        return len(self.alphabet) + 3

    def encode(self, text: str) -> list[int]:
        """The tokens of the text alone, without begin or end."""
        return [self._id_of[character] for character in text]

    def encode_prompt(self, text: str) -> list[int]:
        return [self.bos_id, *self.encode(text)]

    def encode_completion(self, text: str) -> list[int]:
        return [*self.encode(text), self.eos_id]

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text up to the end of sequence. Padding or begin tokens that a model emits become `?`."""
        characters = []
        for token_id in token_ids:
            if token_id == self.eos_id:
                break
            characters.append(self.alphabet[token_id - 3] if token_id >= 3 else "?")
        return "".join(characters)
