"""Writes a model of random numbers in three files, with the `gguf` package (`pip install gguf`)."""

from pathlib import Path

import gguf
import numpy as np

random = np.random.default_rng(1)
writer = gguf.GGUFWriter(
    Path(__file__).with_name("small.gguf"), "llama", split_max_tensors=2, small_first_shard=False
)
writer.add_name("small")
writer.add_block_count(1)
for name, shape, dtype in [
    ("token_embd.weight", (12, 64), np.float16),
    ("blk.0.attn_norm.weight", (64,), np.float32),
    ("blk.0.attn_q.weight", (3, 64), np.float32),
    ("blk.0.attn_k.weight", (5, 64), np.float16),
    ("output_norm.weight", (65,), np.float32),
]:
    writer.add_tensor(name, random.standard_normal(shape).astype(dtype))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
