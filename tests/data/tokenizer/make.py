"""Writes vectors.json: the tokens of hard texts, by OpenAI's tiktoken with the bundled vocabulary.

    pip install tiktoken && python3 tests/data/tokenizer/make.py

tiktoken has a byte-pair encoder and a regular-expression engine of its own, so the expectation
does not come from the `tokenizers` library, with which the crate encodes.
"""
import json
import random
import struct
from pathlib import Path

import tiktoken

HERE = Path(__file__).parent
FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# Llama 3's pre-tokenizer, as Meta publishes it.
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def metadata(gguf):
    """The metadata of a GGUF file."""
    at = 8

    def number(kind):
        nonlocal at
        size = struct.calcsize("<" + FORMATS[kind])
        at += size
        return struct.unpack_from("<" + FORMATS[kind], gguf, at - size)[0]

    def value(kind):
        nonlocal at
        if kind == 8:
            length = number(10)
            at += length
            return gguf[at - length:at].decode()
        if kind == 9:
            kind, count = number(4), number(10)
            return [value(kind) for _ in range(count)]
        return number(kind)

    return {value(8): value(number(4)) for _ in range(number(10))}


def alphabet():
    """GPT-2's characters for bytes, and back."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    chars = {chr(byte): byte for byte in printable}
    return chars | {chr(256 + n): byte for n, byte in enumerate(others)}


def texts():
    """Texts at the edges of the pre-tokenizer's rules, and random mixtures of them."""
    edges = [
        "", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\t\n\t", "a\n", "a \n b",
        "Hello, world!", "hello world", " hello", "Hello  world", "Once upon a time, there was a cat.",
        "I'm you're HE'S we'LL they'd I'VE can't 'twas", "'s 'S 'ſ", "’s", "don''t",
        "1", "12", "123", "1234", "1234567", "3.14159", "1,000,000", "a1b22c333d4444", "１２３４", "²³¹", "½", "Ⅳ",
        "!", "!!", "! !", "...", "?!\n", "a...b", " ...", "(a)", "[[x]]", "--\n\n--", "#$%&*+", "\"quoted\"",
        "über", "Ünïcödé", "é", "e\u0301", "ñandú", "naïve café", "ß", "ǅ", "İi", "\u00a0x", "x\u00a0", "\u2003", "\u3000",
        "日本語", "日本語のテキスト", "中文，测试。", "한국어", "हिन्दी में", "العربية", "עברית", "ไทย", "Ελληνικά", "кириллица",
        "🙂", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "a🙂b", "✊🏽", "\u200b", "a\u200bb", "\ufeffa", "\u2028", "\u0085", "\x00", "\x7f", "\x1b[0m",
        "fn main() { println!(\"{}\", 1 << 2); }", "https://example.org/a?b=c&d=%20", "user@example.org", "C:\\temp\\x",
        "  indented\n    more\n", "tab\tseparated\tvalues", "trailing   ", "\n\n\n  x", "camelCaseWord snake_case_word",
        "the the the", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "TL;DR: A cat, a dog.", "Lily's mom said, \"Let's go!\"",
    ]
    mix = random.Random(1)
    return edges + ["".join(mix.choices(edges, k=mix.randint(2, 6))) for _ in range(80)]


def special_texts():
    """Texts with special tokens in them, and with texts that only look like some."""
    return [
        "<|eot_id|>", "a<|eot_id|>b", " <|eot_id|> ", "<|begin_of_text|>Hi<|eot_id|>", "<|eot_id|><|eot_id|>",
        "<|eot_id", "|eot_id|>", "<|EOT_ID|>", "<|eot_id|>\n\n", "User: hi<|eot_id|>Assistant: ",
        "<|start_header_id|>user<|end_header_id|>", "<|reserved_special_token_0|>x", "<|<|eot_id|>|>", "<think>",
    ]


def main():
    data = metadata((HERE / "../../../models/tiny-stories.gguf").read_bytes()[:1 << 20][8:])
    chars = alphabet()
    kinds = data["tokenizer.ggml.token_type"]
    normal, special = {}, {}
    for id, (token, kind) in enumerate(zip(data["tokenizer.ggml.tokens"], kinds)):
        if kind == 1:
            normal[bytes(chars[char] for char in token)] = id
        else:
            special[token] = id
    # tiktoken takes ranks for ids: the order of merges must be the order of tokens.
    merged = [merge.replace(" ", "") for merge in data["tokenizer.ggml.merges"]]
    assert merged == data["tokenizer.ggml.tokens"][256:256 + len(merged)]
    encoding = tiktoken.Encoding("bundled", pat_str=PATTERN, mergeable_ranks=normal, special_tokens=special)

    plain = [{"text": text, "ids": encoding.encode_ordinary(text)} for text in texts()]
    with_special = [
        {"text": text, "ids": encoding.encode(text, allowed_special="all"), "idsAsText": encoding.encode_ordinary(text)}
        for text in special_texts()
    ]
    lines = lambda rows: ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows)
    text = f'{{\n"plain": [\n{lines(plain)}\n],\n"special": [\n{lines(with_special)}\n]\n}}\n'
    (HERE / "vectors.json").write_text(text)
    print(len(plain), "texts and", len(with_special), "with special tokens, by tiktoken", tiktoken.__version__)


main()
