"""The model in NumPy, read from its GGUF file, with or without an adapter. It shares no code with model.py, so that
each can be compared with the other."""

import numpy as np

import gguf


class Adapter:
    """A LoRA adapter of a GGUF file, checked against the file of its base.

    `pairs` has {tensor's name: (A [rank, in], B [out, rank])}. `delta` is user_scale * alpha / rank * B (A x).
    """

    def __init__(self, path, base):
        file = gguf.Reader(path)
        metadata = file.metadata
        for key, wanted in (
            ("general.type", "adapter"),
            ("adapter.type", "lora"),
            ("general.architecture", base.metadata["general.architecture"]),
        ):
            if metadata.get(key) != wanted:
                raise ValueError(f"{path}: {key} is {metadata.get(key)}, not {wanted}")
        self.alpha, self.pairs = metadata.get("adapter.lora.alpha", 0.0), {}
        for name in file.tensors:
            tensor, _, half = name.rpartition(".")
            if half not in ("lora_a", "lora_b"):
                raise ValueError(f"{path}: {name} is no half of a pair")
            self.pairs[tensor] = tuple(file.tensors.get(f"{tensor}.{half}") for half in ("lora_a", "lora_b"))
        if not self.pairs:
            raise ValueError(f"{path} has no pair")
        for name, (a, b) in self.pairs.items():
            if a is None or b is None or name not in base.tensors:
                raise ValueError(f"{path}: {name} lacks a half or is no tensor of the base")
            codes, _ = base.tensors[name]
            if a.shape[0] != b.shape[1] or (b.shape[0], a.shape[1]) != codes.shape:
                raise ValueError(f"{path}: {name} has A {a.shape} and B {b.shape} for {codes.shape}")

    def delta(self, name, x, user_scale):
        if name not in self.pairs:
            return 0
        a, b = (half.astype(x.dtype) for half in self.pairs[name])
        scale = user_scale * self.alpha / b.shape[1] if self.alpha else user_scale
        return scale * (x @ a.T @ b.T)


class Reference:
    def __init__(self, path, adapter=None, user_scale=1.0, dtype=np.float64):
        self.file = gguf.Reader(path)
        get = lambda key: self.file.metadata[f"bitnet-b1.58.{key}"]
        self.blocks, self.heads, self.kv_heads = (
            get("block_count"),
            get("attention.head_count"),
            get("attention.head_count_kv"),
        )
        self.head_dim, self.base = get("rope.dimension_count"), get("rope.freq_base")
        self.eps, self.dtype = get("attention.layer_norm_rms_epsilon"), dtype
        self.adapter, self.user_scale = adapter and Adapter(adapter, self.file), user_scale

    def norm(self, x, name):
        weight = self.file.tensors[f"{name}.weight"].astype(self.dtype)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * weight

    def product(self, x, name):
        name += ".weight"
        codes, scale = self.file.tensors[name]
        largest = np.maximum(np.abs(x).max(-1, keepdims=True), 1e-5)
        rounded = np.clip(np.rint(x * (127 / largest)), -128, 127)
        y = rounded @ codes.T.astype(self.dtype) * (scale * largest / 127)
        return y if self.adapter is None else y + self.adapter.delta(name, x, self.user_scale)

    def rotate(self, x):
        half = self.head_dim // 2
        angles = np.outer(np.arange(len(x)), self.base ** (-np.arange(half) / half))[:, None]
        cos, sin, a, b = np.cos(angles), np.sin(angles), x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def logits(self, ids):
        """Logits [tokens, vocabulary] after each of `ids`."""
        count = len(ids)
        embedding = self.file.tensors["token_embd.weight"].astype(self.dtype)
        x = embedding[np.asarray(ids)]
        hidden = np.triu(np.full((count, count), -np.inf), 1)
        for n in range(self.blocks):
            p = f"blk.{n}."
            h = self.norm(x, p + "attn_norm")
            q = self.rotate(self.product(h, p + "attn_q").reshape(count, self.heads, -1))
            k = self.rotate(self.product(h, p + "attn_k").reshape(count, self.kv_heads, -1))
            v = self.product(h, p + "attn_v").reshape(count, self.kv_heads, -1)
            k, v = (np.repeat(t, self.heads // self.kv_heads, 1) for t in (k, v))
            scores = np.einsum("thd,shd->hts", q, k) / np.sqrt(self.head_dim) + hidden
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            h = np.einsum("hts,shd->thd", shares, v).reshape(count, -1)
            x = x + self.product(self.norm(h, p + "attn_sub_norm"), p + "attn_output")
            h = self.norm(x, p + "ffn_norm")
            h = np.maximum(self.product(h, p + "ffn_gate"), 0) ** 2 * self.product(h, p + "ffn_up")
            x = x + self.product(self.norm(h, p + "ffn_sub_norm"), p + "ffn_down")
        return self.norm(x, "output_norm") @ embedding.T
