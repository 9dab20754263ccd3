"""Writes a trained model as a GGUF file: products as I2_S, the embedding as Q8_0 or F16.

python export.py RUN model.gguf --name my-model --licence mit
"""

import argparse
import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

import checkpoint
import gguf
from tokenizer import BEGIN, CONTROL, END, END_OF_TURN, TEMPLATE

ARCHITECTURE = "bitnet-b1.58"
I2_S_FILE_TYPE = 40
NORMAL = 1


def vocabulary(path):
    """The metadata of a tokenizer."""
    tokenizer = Tokenizer.from_file(str(path))
    description = json.loads(tokenizer.to_str())
    special = {token["id"] for token in description["added_tokens"]}
    tokens = sorted(tokenizer.get_vocab(with_added_tokens=True).items(), key=lambda row: row[1])
    number = {token: n for token, n in tokens}
    strings = (gguf.ARRAY, gguf.STRING)
    return [
        ("tokenizer.ggml.model", gguf.STRING, "gpt2"),
        ("tokenizer.ggml.pre", gguf.STRING, "llama-bpe"),
        ("tokenizer.ggml.tokens", strings, [token for token, _ in tokens]),
        ("tokenizer.ggml.token_type", (gguf.ARRAY, gguf.I32), [CONTROL if n in special else NORMAL for _, n in tokens]),
        ("tokenizer.ggml.merges", strings, [" ".join(pair) for pair in description["model"]["merges"]]),
        ("tokenizer.ggml.bos_token_id", gguf.U32, number[BEGIN]),
        ("tokenizer.ggml.eos_token_id", gguf.U32, number[END]),
        ("tokenizer.ggml.eot_token_id", gguf.U32, number[END_OF_TURN]),
        ("tokenizer.ggml.padding_token_id", gguf.U32, number[END]),
        ("tokenizer.ggml.add_bos_token", gguf.BOOL, True),
        ("tokenizer.chat_template", gguf.STRING, TEMPLATE),
    ]


def export(model, tokenizer, path, name="ternary-model", licence=None, embedding="q8_0"):
    """Writes `model` with a vocabulary, the path of a tokenizer.json."""
    config, architecture = model.config, ARCHITECTURE
    metadata = [
        ("general.architecture", gguf.STRING, architecture),
        ("general.type", gguf.STRING, "model"),
        ("general.name", gguf.STRING, name),
        ("general.size_label", gguf.STRING, f"{model.parameter_count() / 1e6:.0f}M"),
        ("general.file_type", gguf.U32, I2_S_FILE_TYPE),
        ("general.quantization_version", gguf.U32, 2),
        (f"{architecture}.vocab_size", gguf.U32, config.vocabulary),
        (f"{architecture}.context_length", gguf.U32, config.context),
        (f"{architecture}.embedding_length", gguf.U32, config.width),
        (f"{architecture}.block_count", gguf.U32, config.blocks),
        (f"{architecture}.feed_forward_length", gguf.U32, config.ffn),
        (f"{architecture}.rope.dimension_count", gguf.U32, config.head_dim),
        (f"{architecture}.rope.freq_base", gguf.F32, config.rope_base),
        (f"{architecture}.attention.head_count", gguf.U32, config.heads),
        (f"{architecture}.attention.head_count_kv", gguf.U32, config.kv_heads),
        (f"{architecture}.attention.layer_norm_rms_epsilon", gguf.F32, config.eps),
    ]
    if licence:
        metadata.append(("general.license", gguf.STRING, licence))
    values = {key: value.detach().float().cpu().numpy() for key, value in model.state_dict().items()}
    tensors = [("token_embd.weight", embedding, values.pop("token_embd.weight"))]
    for product, linear in model.products():
        values.pop(f"{product}.weight")
        weight, scale = (t.detach().cpu().numpy() for t in linear.ternary())
        tensors.append((f"{product}.weight", "i2_s", (np.rint(weight).astype(np.int8), float(scale))))
    tensors += [(key, "f32", value) for key, value in values.items()]
    gguf.write(path, metadata + vocabulary(tokenizer), tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--name", default="ternary-model", help="general.name")
    parser.add_argument("--licence", help="general.license, such as mit")
    parser.add_argument("--embedding", choices=("q8_0", "f16"), default="q8_0")
    options = parser.parse_args()
    model = checkpoint.read_model(options.run)
    export(model, options.run / "tokenizer.json", options.out, options.name, options.licence, options.embedding)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
