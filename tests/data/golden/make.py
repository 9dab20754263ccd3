"""Writes golden.json: what golden.gguf answers to the prompts of texts.json, in float64.

    pip install numpy tiktoken && python3 tests/data/golden/make.py

Nothing here is the crate's: NumPy computes the model and tiktoken makes the tokens. The model is
BitNet b1.58: ternary weights, int8 activations with a scale for each token, the rest in float64.
"""
import json
import sys
from pathlib import Path

import numpy as np
import tiktoken

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from read_gguf import Gguf, encoding

# Below this, a rounding elsewhere could change a token.
ENOUGH = 2.0
F32, F16, I2_S = 0, 1, 36


def tensor(gguf, name):
    """An array `[rows, columns]` or `[columns]` in float64; a ternary matrix as codes and scale."""
    ne, kind, at = gguf.tensors[name]
    shape, n = ne[::-1], int(np.prod(ne))
    if kind == I2_S:
        # Byte j of a block of 32 has the elements j, j + 32, j + 64 and j + 96 of 128, from the
        # highest bits down. The tensor's scale follows the codes.
        packed = np.frombuffer(gguf.bytes, np.uint8, n // 4, at).reshape(-1, 1, 32)
        codes = packed >> np.array([6, 4, 2, 0], np.uint8).reshape(1, 4, 1) & 3
        assert codes.max() < 3
        scale = np.frombuffer(gguf.bytes, "<f4", 1, at + n // 4)[0]
        return codes.reshape(shape).astype(np.int64) - 1, float(scale)
    values = np.frombuffer(gguf.bytes, {F32: "<f4", F16: "<f2"}[kind], n, at)
    return values.reshape(shape).astype(np.float64)


class Model:
    """The model of a GGUF file, with its cache of keys and values."""

    def __init__(self, gguf):
        prefix = gguf.metadata["general.architecture"]
        setting = lambda name: gguf.metadata[f"{prefix}.{name}"]
        self.tensors = {name: tensor(gguf, name) for name in gguf.tensors}
        self.n_layer = setting("block_count")
        self.n_head = setting("attention.head_count")
        self.n_head_kv = setting("attention.head_count_kv")
        self.head_dim = setting("embedding_length") // self.n_head
        self.eps = setting("attention.layer_norm_rms_epsilon")
        self.base = setting("rope.freq_base")
        self.reset()

    def reset(self):
        """Forgets all tokens."""
        self.keys = [[] for _ in range(self.n_layer)]
        self.values = [[] for _ in range(self.n_layer)]

    def step(self, id):
        """The logits after one more token."""
        x = self.tensors["token_embd.weight"][id]
        for block in range(self.n_layer):
            h = self.norm(x, f"blk.{block}.attn_norm")
            o = self.norm(self.attention(block, h), f"blk.{block}.attn_sub_norm")
            x = x + self.linear(o, f"blk.{block}.attn_output")
            h = self.norm(x, f"blk.{block}.ffn_norm")
            gate = np.maximum(self.linear(h, f"blk.{block}.ffn_gate"), 0)
            f = gate * gate * self.linear(h, f"blk.{block}.ffn_up")
            x = x + self.linear(self.norm(f, f"blk.{block}.ffn_sub_norm"), f"blk.{block}.ffn_down")
        return self.tensors["token_embd.weight"] @ self.norm(x, "output_norm")

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.eps) * self.tensors[f"{name}.weight"]

    def linear(self, x, name):
        """A ternary matrix times `x`, which is rounded to int8."""
        codes, scale = self.tensors[f"{name}.weight"]
        s = 127 / max(1e-5, np.abs(x).max())
        q = np.clip(np.rint(x * s), -128, 127).astype(np.int64)  # halves to even
        return (codes @ q) / s * scale

    def attention(self, block, h):
        """What every head finds among the tokens so far, one head after the other."""
        pos = len(self.keys[block])
        q = self.rotated(self.linear(h, f"blk.{block}.attn_q"), pos)
        self.keys[block].append(self.rotated(self.linear(h, f"blk.{block}.attn_k"), pos))
        v = self.linear(h, f"blk.{block}.attn_v").reshape(self.n_head_kv, self.head_dim)
        self.values[block].append(v)
        # Several heads share the keys and values of one KV head.
        keys = np.repeat(np.array(self.keys[block]), self.n_head // self.n_head_kv, axis=1)
        values = np.repeat(np.array(self.values[block]), self.n_head // self.n_head_kv, axis=1)
        scores = np.einsum("hd,phd->hp", q, keys) / np.sqrt(self.head_dim)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("hp,phd->hd", weights, values).ravel()

    def rotated(self, x, pos):
        """Each head, its element i turned with element i + head_dim / 2."""
        half = self.head_dim // 2
        angle = pos * self.base ** (-np.arange(half) / half)
        a, b = x.reshape(-1, 2, half).transpose(1, 0, 2)
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle),
                               b * np.cos(angle) + a * np.sin(angle)], axis=1)


def prompt_of(text):
    """The text of a prompt: as it is, or a conversation in BitNet's template."""
    if "raw" in text:
        return text["raw"]
    turns = "".join(f"{role.capitalize()}: {said}<|eot_id|>" for role, said in text["turns"])
    return f"<|begin_of_text|>{turns}Assistant: "


def ten_best(logits):
    ids = np.argsort(-logits, kind="stable")[:10]
    return {"ids": ids.tolist(), "logits": np.round(logits[ids], 4).tolist()}


def golden(model, tokens, text):
    """A prompt and its greedy answer."""
    prompt = prompt_of(text)
    ids = tokens.encode(prompt, allowed_special="all")
    length = len(tokens.encode_ordinary(text["answer"])) + (text["stop"] is not None)
    stops = [tokens.encode_single_token(stop) for stop in ("<|eot_id|>", "<|end_of_text|>")]

    model.reset()
    all_logits = [model.step(id) for id in ids]
    logits, greedy, leads = all_logits[-1], [], []
    while len(greedy) < length and not (greedy and greedy[-1] in stops):
        second, best = np.sort(logits)[-2:]
        leads.append(round(best - second, 4))
        greedy.append(int(logits.argmax()))
        logits = model.step(greedy[-1])

    stopped = greedy[-1] in stops
    answer = tokens.decode(greedy[:-1] if stopped else greedy)
    assert (answer, stopped) == (text["answer"], text["stop"] is not None), answer
    assert min(leads) > ENOUGH, (text["name"], min(leads))
    return {
        "name": text["name"],
        "kind": "chat" if "turns" in text else "raw",
        "turns": text.get("turns"),
        "text": prompt,
        "ids": ids,
        "first": ten_best(all_logits[0]),
        "last": ten_best(all_logits[-1]),
        "greedy": greedy,
        "greedy_text": answer,
        "greedy_stopped": stopped,
        "greedy_margins": leads,
        "greedy_smallest_margin": min(leads),
    }


def main():
    gguf = Gguf(HERE / "golden.gguf")
    model, tokens = Model(gguf), encoding(gguf.metadata)
    texts = json.loads((HERE / "texts.json").read_text())
    prompts = [golden(model, tokens, text) for text in texts]
    goldens = {
        "model": "golden.gguf",
        "notes": [
            f"Written by make.py: the model in float64 by NumPy {np.__version__}, "
            f"its tokens by tiktoken {tiktoken.__version__}.",
            "The fields are those of models/tiny-stories.goldens.json.",
            "Every lead is far above what roundings change: every device gives these tokens.",
        ],
        "prompts": prompts,
    }
    lines = json.dumps(goldens, ensure_ascii=False, separators=(",", ":"))
    (HERE / "golden.json").write_text(lines.replace('{"name"', '\n{"name"') + "\n")
    for prompt in prompts:
        lengths = f'{len(prompt["ids"])} + {len(prompt["greedy"])} tokens'
        print(f'{prompt["name"]}: {lengths}, the least lead is {prompt["greedy_smallest_margin"]}')


main()
