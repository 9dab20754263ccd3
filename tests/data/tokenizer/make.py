"""Writes vectors.json: the tokens of hard texts, by OpenAI's tiktoken with the bundled vocabulary.

    pip install tiktoken && python3 tests/data/tokenizer/make.py

tiktoken has a byte-pair encoder and a regular-expression engine of its own, so the expectation
does not come from the `tokenizers` library, with which the crate encodes.
"""
import json
import random
import sys
from pathlib import Path

import tiktoken

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from read_gguf import Gguf, encoding


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
    tokens = encoding(Gguf(HERE / "../../../models/tiny-stories.gguf").metadata)
    plain = [{"text": text, "ids": tokens.encode_ordinary(text)} for text in texts()]
    with_special = [
        {"text": text, "ids": tokens.encode(text, allowed_special="all"), "idsAsText": tokens.encode_ordinary(text)}
        for text in special_texts()
    ]
    lines = lambda rows: ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows)
    text = f'{{\n"plain": [\n{lines(plain)}\n],\n"special": [\n{lines(with_special)}\n]\n}}\n'
    (HERE / "vectors.json").write_text(text)
    print(len(plain), "texts and", len(with_special), "with special tokens, by tiktoken", tiktoken.__version__)


main()
