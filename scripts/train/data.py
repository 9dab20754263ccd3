"""Texts as rows of tokens. A row holds whole documents; a token sees its own document alone.

A file of documents has one a line, as JSON: {"text": …} or {"messages": [{"role": …, "content": …}, …]}, also packed
with gzip. A file that ends in .txt is one document for each part between blank lines.
"""

import gzip
import json
import random
from pathlib import Path

import numpy as np

from tokenizer import Encoder

# Set in a token that is to be learned. So a vocabulary has at most 32768 tokens.
LEARNED = 0x8000
# A block is full once this number of documents did not fit into any row.
MAX_MISSES = 32
# The most documents that a block may take. No block needs as many.
DOCUMENTS_OF_BLOCK = 100_000
# Blocks from this number on are for measuring. Their documents of files are learned by no other block.
HELD_OUT = 2**40
HELD_OUT_SHARE = 50
# The share of conversations in which the model also learns what the user says, for the sake of its language.
WHOLE_SHARE = 0.2


def read(path):
    """The documents of a file."""
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        if Path(path).suffix == ".txt":
            return [part.strip() for part in file.read().split("\n\n") if part.strip()]
        documents = []
        for number, line in enumerate(file, 1):
            row = json.loads(line)
            document = row.get("text") or row.get("messages")
            if not document:
                raise ValueError(f"{path}, line {number}: neither `text` nor `messages`")
            documents.append(document)
        return documents


class Mix:
    """Documents of files and of the generator. Document `n` is always the same, whoever asks for it."""

    def __init__(self, files, generated, seed):
        documents = [document for path in files for document in read(path)]
        if not documents and not generated:
            raise ValueError("There is nothing to learn: name files with --data, or use --generate")
        self.documents = [d for n, d in enumerate(documents) if n % HELD_OUT_SHARE]
        self.held_out = documents[::HELD_OUT_SHARE]
        self.generated, self.seed = generated if self.documents else 1.0, seed

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--data", nargs="*", default=[], metavar="FILE", help="files of documents")
        parser.add_argument(
            "--generate",
            type=float,
            default=0.0,
            metavar="SHARE",
            help="the share of documents that are generated, from 0 to 1",
        )
        parser.add_argument("--seed", type=int, default=1, help="another seed gives other documents")

    @classmethod
    def of(cls, options):
        return cls(options.data, options.generate, options.seed)

    def document(self, n, held_out=False):
        rng = random.Random(f"{self.seed} {n}")
        if rng.random() < self.generated:
            from generate import document

            return document(rng)
        return rng.choice(self.held_out if held_out else self.documents)


class Blocks:
    """Blocks of rows by their number: int32 [rows, context], the same for the same number. As a data set of PyTorch,
    so that several processes make them."""

    def __init__(self, mix, tokenizer, context, rows):
        self.mix, self.path, self.context, self.rows, self.encoder = mix, tokenizer, context, rows, None

    def __len__(self):
        return HELD_OUT

    def __getitem__(self, number):
        # Each process reads the tokenizer for itself.
        self.encoder = self.encoder or Encoder(self.path)
        rng = random.Random(f"rows {self.mix.seed} {number}")
        block = np.full((self.rows, self.context), self.encoder.end, np.int32)
        filled = np.zeros(self.rows, np.int64)
        misses = 0
        for n in range(number * DOCUMENTS_OF_BLOCK, (number + 1) * DOCUMENTS_OF_BLOCK):
            ids, learned = self.encoder.document(
                self.mix.document(n, number >= HELD_OUT), rng.random() < 0.5, rng.random() < WHOLE_SHARE
            )
            tokens = (np.array(ids) + LEARNED * np.array(learned))[: self.context]
            room = self.context - filled
            if room.max() < len(tokens):
                misses += 1
                if misses == MAX_MISSES:
                    break
                continue
            row = np.where(room >= len(tokens), room, self.context + 1).argmin()
            block[row, filled[row] : filled[row] + len(tokens)] = tokens
            filled[row] += len(tokens)
        return block
