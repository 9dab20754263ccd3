#!/usr/bin/env python3
"""Writes thinking.gguf: a model made by hand that reasons before it answers. Its file is of the kind
of Ternary-Bonsai's: `qwen3` with YaRN, weights of Q2_0.

    python3 tests/data/thinking/make.py

Each token of the texts below has a dimension of its own. The only layer's feed-forward network maps
the dimension of a token to that of the token after it; attention adds nothing. So what the model
says depends on the last token alone: after `<|assistant|>` it reasons, and after `</think>` and a
blank line it answers.
"""
import struct
from pathlib import Path

WIDTH = 128
HEAD = 32
ARCH = "qwen3"
TEMPLATE = """{% for message in messages %}<|{{ message.role }}|>
{%- if message.role == 'assistant' and '</think>' in message.content %}
    {{- message.content.split('</think>')[-1].strip() }}
{%- else %}
    {{- message.content }}
{%- endif %}<|end|>{% endfor %}
{% if add_generation_prompt %}<|assistant|>
    {%- if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

CONTROL, USER_DEFINED = 3, 4
SPECIAL = {
    "<|system|>": CONTROL,
    "<|user|>": CONTROL,
    "<|assistant|>": CONTROL,
    "<|end|>": CONTROL,
    "<think>": USER_DEFINED,
    "</think>": USER_DEFINED,
}
# Each token of a chain is followed by the next one. `Ġ` is a space, `Ċ` a line break.
CHAIN = [
    "<|assistant|>", "<think>", "Ċ", "Is", "Ġit", "Ġcold", "?", "ĠIn", "Ġsummer", "Ġno", ".Ċ",
    "</think>", "ĊĊ", "It", "Ġis", "Ġwarm", "Ġtoday", "!", "<|end|>",
]


def byte_char(byte):
    """GPT-2's printable character for a byte."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [other for other in range(256) if other not in shown]
    return chr(byte) if byte in shown else chr(256 + hidden.index(byte))


TOKENS = [byte_char(byte) for byte in range(256)]
TOKENS += [token for token in CHAIN if token not in TOKENS and token not in SPECIAL]
NORMAL = len(TOKENS)
TOKENS += SPECIAL


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def text(value):
    return struct.pack("<I", 8) + string(value)


def integer(value):
    return struct.pack("<II", 4, value)


def number(value):
    return struct.pack("<If", 6, value)


def array(kind, items):
    return struct.pack("<IIQ", 9, kind, len(items)) + b"".join(items)


def ternary(rows):
    """A matrix of -1, 0 and 1 as Q2_0: blocks of 64 with the scale 1."""
    codes = [value + 1 for row in rows for value in row]
    packed = bytearray()
    for at in range(0, len(codes), 64):
        packed += struct.pack("<e", 1.0)
        for j in range(at, at + 64, 4):
            packed.append(sum(code << 2 * i for i, code in enumerate(codes[j : j + 4])))
    return bytes(packed)


def matrix(rows, entries):
    return [[1 if (row, column) in entries else 0 for column in range(WIDTH)] for row in range(rows)]


def main():
    size = range(len(CHAIN))
    same = {(i, i) for i in size}
    following = {(i + 1, i) for i in size[:-1]}
    rows = [[1.0 if i < len(CHAIN) and token == CHAIN[i] else 0.0 for i in range(WIDTH)] for token in TOKENS]
    tensors = [("token_embd.weight", [WIDTH, len(TOKENS)], 1, struct.pack(f"<{WIDTH * len(TOKENS)}e", *sum(rows, [])))]
    for name, n_rows, entries in [
        ("attn_q", WIDTH, set()), ("attn_k", WIDTH // 2, set()), ("attn_v", WIDTH // 2, set()),
        ("attn_output", WIDTH, set()), ("ffn_gate", WIDTH, same), ("ffn_up", WIDTH, same),
        ("ffn_down", WIDTH, following),
    ]:
        data = ternary(matrix(n_rows, entries))
        tensors.append((f"blk.0.{name}.weight", [WIDTH, n_rows], 42, data))
    for name, width in [
        ("blk.0.attn_norm", WIDTH), ("blk.0.ffn_norm", WIDTH), ("output_norm", WIDTH),
        ("blk.0.attn_q_norm", HEAD), ("blk.0.attn_k_norm", HEAD),
    ]:
        tensors.append((f"{name}.weight", [width], 0, struct.pack(f"<{width}f", *[1.0] * width)))

    kinds = [1] * NORMAL + list(SPECIAL.values())
    metadata = {
        "general.architecture": text(ARCH),
        "general.name": text("Reasons before it answers"),
        f"{ARCH}.context_length": integer(256),
        f"{ARCH}.embedding_length": integer(WIDTH),
        f"{ARCH}.block_count": integer(1),
        f"{ARCH}.feed_forward_length": integer(WIDTH),
        f"{ARCH}.attention.key_length": integer(HEAD),
        f"{ARCH}.attention.value_length": integer(HEAD),
        f"{ARCH}.attention.head_count": integer(4),
        f"{ARCH}.attention.head_count_kv": integer(2),
        f"{ARCH}.attention.layer_norm_rms_epsilon": number(1e-6),
        f"{ARCH}.rope.freq_base": number(1e6),
        f"{ARCH}.rope.scaling.type": text("yarn"),
        f"{ARCH}.rope.scaling.factor": number(4),
        f"{ARCH}.rope.scaling.original_context_length": integer(64),
        "tokenizer.ggml.model": text("gpt2"),
        "tokenizer.ggml.pre": text("llama-bpe"),
        "tokenizer.ggml.tokens": array(8, [string(token) for token in TOKENS]),
        "tokenizer.ggml.token_type": array(5, [struct.pack("<i", kind) for kind in kinds]),
        "tokenizer.ggml.merges": array(8, []),
        "tokenizer.ggml.eos_token_id": integer(TOKENS.index("<|end|>")),
        "tokenizer.ggml.add_bos_token": struct.pack("<I?", 7, False),
        "tokenizer.chat_template": text(TEMPLATE),
    }
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    out += b"".join(string(key) + value for key, value in metadata.items())
    data = b""
    for name, ne, kind, values in tensors:
        out += string(name) + struct.pack("<I", len(ne)) + struct.pack(f"<{len(ne)}Q", *ne)
        out += struct.pack("<IQ", kind, len(data))
        data += values + bytes(-len(values) % 32)
    out += bytes(-len(out) % 32)
    Path(__file__).with_name("thinking.gguf").write_bytes(out + data)


main()
