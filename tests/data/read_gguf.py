"""Reads GGUF files, for the scripts beside the data. It shares no code with the crate."""
import struct

import tiktoken

STRING, ARRAY = 8, 9
# How the struct module calls the other types.
SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
# Llama 3's pre-tokenizer, as Meta publishes it.
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


class Gguf:
    """A file of version 2 or 3, with the default alignment.

    `metadata` has its values by key. `tensors` has, by name, the shape (the fastest dimension
    first), the number of the type, and the offset in `bytes`.
    """

    def __init__(self, path):
        self.bytes, self.at = path.read_bytes(), 8  # after the magic and the version
        n_tensors, n_metadata = self.scalar(10), self.scalar(10)
        self.metadata = {self.string(): self.value(self.scalar(4)) for _ in range(n_metadata)}
        table = {self.string(): self.entry() for _ in range(n_tensors)}
        start = -(-self.at // 32) * 32
        self.tensors = {
            name: (ne, kind, start + offset) for name, (ne, kind, offset) in table.items()
        }

    def scalar(self, kind):
        form = "<" + SCALARS[kind]
        at = self.at
        self.at += struct.calcsize(form)
        return struct.unpack_from(form, self.bytes, at)[0]

    def string(self):
        length = self.scalar(10)
        self.at += length
        return self.bytes[self.at - length:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.scalar(4), self.scalar(10)
            return [self.value(kind) for _ in range(count)]
        return self.scalar(kind)

    def entry(self):
        ne = [self.scalar(10) for _ in range(self.scalar(4))]
        return ne, self.scalar(4), self.scalar(10)


def encoding(metadata):
    """tiktoken's byte-pair encoder with the vocabulary of a file."""
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    # tiktoken takes ids for ranks: the order of merges must be the order of tokens.
    merged = [merge.replace(" ", "") for merge in metadata["tokenizer.ggml.merges"]]
    assert merged == tokens[256:256 + len(merged)]
    byte_of = alphabet()
    normal, special = {}, {}
    for id, (token, kind) in enumerate(zip(tokens, kinds)):
        if kind == 1:
            normal[bytes(byte_of[char] for char in token)] = id
        else:
            special[token] = id
    return tiktoken.Encoding(
        "from a file", pat_str=PATTERN, mergeable_ranks=normal, special_tokens=special
    )


def alphabet():
    """The byte that each of GPT-2's characters stands for."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    byte_of = {chr(byte): byte for byte in printable}
    return byte_of | {chr(256 + n): byte for n, byte in enumerate(others)}
