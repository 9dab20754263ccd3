"""The vocabulary of a model: byte-level BPE with the pre-tokenizer of Llama 3, and the chat format.

python tokenizer.py OUT.json --size 5120 [--data FILE ...] [--generate SHARE]
"""

import argparse
import json

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import gguf

# The names and the chat format are those of BitNet b1.58 2B-4T, which engines know.
BEGIN, END, END_OF_TURN = "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"
SPECIAL = [BEGIN, END, "<|start_header_id|>", "<|end_header_id|>", END_OF_TURN] + [
    f"<|reserved_special_token_{n}|>" for n in range(3)
]
TEMPLATE = (
    "{% for message in messages %}"
    "{% set content = message['role'] | capitalize + ': ' + message['content'] | trim + '<|eot_id|>' %}"
    "{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}"
)
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
# What GGUF files call a special token.
CONTROL = 3


def pre_tokenizer():
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LLAMA_3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def made(texts, size):
    """A tokenizer with `size` tokens. The special ones are the last."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizer()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size - len(SPECIAL), initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator(texts, trainer)
    model = json.loads(trained.to_str())["model"]
    if len(model["vocab"]) != size - len(SPECIAL):
        raise ValueError(
            f"The texts give {len(model['vocab'])} tokens, fewer than {size - len(SPECIAL)}: add texts, or take a smaller size"
        )
    merges = [tuple(pair) for pair in model["merges"]]
    return tokenizer_of(model["vocab"], merges, SPECIAL)


def tokenizer_of(vocabulary, merges, special):
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer(), decoders.ByteLevel()
    tokenizer.add_special_tokens(special)
    return tokenizer


def of_metadata(metadata):
    """The tokenizer of a GGUF file."""
    if metadata.get("tokenizer.ggml.pre") != "llama-bpe":
        raise ValueError(f"The pre-tokenizer is {metadata.get('tokenizer.ggml.pre')}; this recipe knows llama-bpe")
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    merges = [tuple(pair.split(" ")) for pair in metadata["tokenizer.ggml.merges"]]
    vocabulary = {token: n for n, token in enumerate(tokens)}
    return tokenizer_of(vocabulary, merges, [token for token, kind in zip(tokens, kinds) if kind == CONTROL])


class Encoder:
    """Documents to tokens. A document is a text, or the messages of a conversation:
    [{"role": "system" | "user" | "assistant", "content": text}]."""

    def __init__(self, path):
        """`path` is a tokenizer.json or a GGUF file."""
        self.tokenizer = (
            of_metadata(gguf.Reader(path).metadata) if str(path).endswith(".gguf") else Tokenizer.from_file(str(path))
        )
        # A text that names a special token does not become one.
        self.tokenizer.encode_special_tokens = True
        self.begin, self.end, self.end_of_turn = (self.tokenizer.token_to_id(t) for t in (BEGIN, END, END_OF_TURN))
        self.size = self.tokenizer.get_vocab_size()

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=True)

    def document(self, document, rejoin=False, whole=False):
        """(ids, whether each of them is to be learned): all of a text, the answers of a conversation or the
        `whole` of it. With `rejoin` the answers before the last are encoded as in a chat that is read again, and
        not learned."""
        if isinstance(document, str):
            ids = self.encode(document.strip()) + [self.end]
            return [self.begin, *ids], [False] + [True] * len(ids)
        ids, learned = [self.begin], [False]

        def add(more, is_learned):
            ids.extend(more)
            learned.extend([is_learned] * len(more))

        for n, message in enumerate(document):
            role, content = message["role"].capitalize(), message["content"].strip()
            if role != "Assistant" or rejoin and n < len(document) - 1:
                add([*self.encode(f"{role}: {content}"), self.end_of_turn], False)
            else:
                add(self.encode("Assistant: "), False)
                add([*self.encode(content), self.end_of_turn], True)
        return ids, [False] + [True] * (len(ids) - 1) if whole else learned

    def prompt(self, messages):
        """The ids after which a model answers."""
        ids = [self.begin]
        for message in messages:
            ids += [*self.encode(f"{message['role'].capitalize()}: {message['content'].strip()}"), self.end_of_turn]
        return ids + self.encode("Assistant: ")


def main():
    from data import Mix

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--size", type=int, default=5120, help="how many tokens, the special ones too")
    parser.add_argument("--documents", type=int, default=60_000, help="how many documents are read")
    Mix.add_arguments(parser)
    options = parser.parse_args()
    mix = Mix.of(options)

    def texts():
        for n in range(options.documents):
            document = mix.document(n)
            parts = (
                [document]
                if isinstance(document, str)
                else [f"{m['role'].capitalize()}: {m['content']}" for m in document]
            )
            yield from parts

    tokenizer = made(texts(), options.size)
    tokenizer.save(options.out)
    print(f"{options.out}: {tokenizer.get_vocab_size()} tokens")


if __name__ == "__main__":
    main()
