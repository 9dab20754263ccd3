"""Makes the folders beside this file: tiny checkpoints of random weights, and the logits that Hugging
Face's transformers gives for them.

    pip install torch transformers accelerate safetensors numpy
    TORCHDYNAMO_DISABLE=1 python3 tests/data/convert/make.py

NAME.f32 are logits [16][288] of NAME, computed in float32 from the files in the folder. Where the model
rounds its activations to int8, NAME.float.f32 are those of the same weights without that rounding.

transformers has no MiniCPM: its logits are those of a Llama whose weights contain MiniCPM's scales.
"""
import json
import math
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).parent
VOCAB = 288
TOKENS = [169, 166, 171, 134, 194, 121, 109, 183, 229, 145, 268, 9, 208, 179, 101, 232]

# As published for each model family.
LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN_2 = LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")

random = torch.Generator().manual_seed(1)


def normal(*shape, scale=1.0):
    return torch.randn(shape, generator=random) * scale


def round_to(dtype, x):
    return x.to(dtype).to(torch.float32)


def byte_chars():
    """GPT-2's characters for bytes, in the order of vocabularies: printable ones first."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) for b in kept] + [chr(256 + i) for i in range(256 - len(kept))]


def byte_level(regex, ignore_merges, nfc, specials, bos=None):
    tokens = byte_chars()
    merges = [("h", "e"), ("l", "l"), ("he", "ll"), ("hell", "o"), ("Ġ", "w"), ("1", "2"), ("Ġw", "o")]
    tokens += [a + b for a, b in merges]
    added = [{"id": len(tokens) + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": special} for i, (text, special) in enumerate(specials)]
    processors = [{"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}]
    if bos:
        sequence = {"Sequence": {"id": "A", "type_id": 0}}
        special = {"SpecialToken": {"id": bos, "type_id": 0}}
        processors.append({"type": "TemplateProcessing", "single": [special, sequence], "pair": [sequence, sequence],
                           "special_tokens": {}})
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "NFC"} if nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "post_processor": {"type": "Sequence", "processors": processors},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                  "ignore_merges": ignore_merges, "vocab": {t: i for i, t in enumerate(tokens)},
                  # Both forms occur.
                  "merges": [f"{a} {b}" for a, b in merges] if ignore_merges else [list(m) for m in merges]},
    }


def sentencepiece():
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    tokens += ["▁", "a", "b", "▁a", "ab", "▁ab", "aa", "▁▁"]
    # By the score of what they make, the best first.
    merges = ["▁ a", "a b", "▁ ab", "▁a b", "a a", "▁ ▁"]
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, t in enumerate(tokens[:3])]
    return {
        "version": "1.0", "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": None,
        "post_processor": {"type": "TemplateProcessing", "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [], "special_tokens": {}},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True,
                  "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges},
    }


def write(folder, name, value):
    (folder / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def fresh(name):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def logits(model, name):
    with torch.no_grad():
        found = model(torch.tensor([TOKENS])).logits[0].to(torch.float32).numpy()
    assert found.shape == (len(TOKENS), VOCAB)
    found.astype("<f4").tofile(HERE / f"{name}.f32")
    print(name, "std", found.std())


def norms(tensors, prefix, names, width):
    for name in names:
        tensors[f"{prefix}.{name}.weight"] = round_to(torch.bfloat16, 1 + normal(width, scale=0.1))


def ternarise(weight):
    """As transformers' WeightQuant: codes, and the scale by which they are multiplied."""
    scale = weight.abs().mean().clamp(min=1e-5)
    return (weight * (1 / scale)).round().clamp(-1, 1), scale


def pack(codes):
    """As transformers' pack_weights: four rows a quarter of the rows apart in a byte."""
    quarters = (codes + 1).to(torch.uint8).chunk(4)
    return sum((quarter << (2 * i) for i, quarter in enumerate(quarters)), torch.zeros_like(quarters[0]))


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def matrices(prefix, width, n_q, n_kv, n_ff):
    return {f"{prefix}.self_attn.q_proj": (n_q, width), f"{prefix}.self_attn.k_proj": (n_kv, width),
            f"{prefix}.self_attn.v_proj": (n_kv, width), f"{prefix}.self_attn.o_proj": (width, n_q),
            f"{prefix}.mlp.gate_proj": (n_ff, width), f"{prefix}.mlp.up_proj": (n_ff, width),
            f"{prefix}.mlp.down_proj": (width, n_ff)}


LLAMA_3_SPECIAL = [("<|begin_of_text|>", True), ("<|end_of_text|>", True), ("<|eot_id|>", True), ("<think>", False)]


def bitnet():
    """Masters of BitNet, in bf16: config.json as transformers 5 writes it."""
    folder = fresh("bitnet")
    width, n_kv, n_ff = 128, 64, 128
    tensors = {"model.embed_tokens.weight": normal(VOCAB, width)}
    tensors["model.norm.weight"] = round_to(torch.bfloat16, 1 + normal(width, scale=0.1))
    for layer in range(2):
        prefix = f"model.layers.{layer}"
        norms(tensors, prefix, ["input_layernorm", "post_attention_layernorm", "self_attn.attn_sub_norm"], width)
        norms(tensors, prefix, ["mlp.ffn_sub_norm"], n_ff)
        for name, shape in matrices(prefix, width, width, n_kv, n_ff).items():
            tensors[f"{name}.weight"] = normal(*shape, scale=0.05)
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write(folder, "config.json", {
        "architectures": ["BitNetForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 263, "dtype": "bfloat16", "eos_token_id": 264, "hidden_act": "relu2", "hidden_size": width,
        "initializer_range": 0.02, "intermediate_size": n_ff, "max_position_embeddings": 256, "model_type": "bitnet",
        "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-05,
        "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "tie_word_embeddings": True,
        "transformers_version": "5.23.0", "use_cache": True, "vocab_size": VOCAB,
        "quantization_config": {"quant_method": "bitnet", "linear_class": "autobitlinear",
                                "quantization_mode": "online", "modules_to_not_convert": None,
                                "use_rms_norm": False, "rms_norm_eps": 1e-6}})
    write(folder, "tokenizer.json", byte_level(LLAMA_3, True, False, LLAMA_3_SPECIAL, "<|begin_of_text|>"))
    write(folder, "tokenizer_config.json", {
        "bos_token": "<|begin_of_text|>", "eos_token": {"__type": "AddedToken", "content": "<|end_of_text|>"},
        "chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}<|eot_id|>{% endfor %}"})
    write(folder, "generation_config.json", {"eos_token_id": [264, 265], "do_sample": True})
    model = load(folder)
    print(type(model.model.layers[0].mlp.up_proj))
    logits(model, "bitnet")


def llama():
    """Packed weights in two files, whose products are divided by the scales; config.json as before
    transformers 5, with the RoPE of Llama 3.1."""
    folder = fresh("llama")
    width, n_q, n_kv, n_ff = 128, 128, 64, 128
    first = {"model.embed_tokens.weight": normal(VOCAB, width)}
    second = {"model.norm.weight": 1 + normal(width, scale=0.1), "lm_head.weight": normal(VOCAB, width, scale=0.3)}
    floats = {}
    for layer, part in ((0, first), (1, second)):
        prefix = f"model.layers.{layer}"
        norms(part, prefix, ["input_layernorm", "post_attention_layernorm"], width)
        for name, shape in matrices(prefix, width, n_q, n_kv, n_ff).items():
            codes, _ = ternarise(normal(*shape))
            # Exact in bf16, and so is its inverse in f16.
            scale = torch.tensor([2.0 ** (3 + len(floats) % 3)])
            part[f"{name}.weight"] = pack(codes)
            part[f"{name}.weight_scale"] = scale
            floats[f"{name}.weight"] = codes / scale
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    weight_map = {}
    for name, part in zip(names, (first, second)):
        part = {key: t if t.dtype == torch.uint8 else t.to(torch.bfloat16) for key, t in part.items()}
        save_file(part, folder / name, metadata={"format": "pt"})
        weight_map |= {key: name for key in part}
        floats |= {key: t.to(torch.float32) for key, t in part.items() if key not in floats and "scale" not in key}
    write(folder, "model.safetensors.index.json", {"metadata": {"total_size": 0}, "weight_map": weight_map})
    config = {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 263, "eos_token_id": 264, "hidden_act": "silu", "hidden_size": width,
        "initializer_range": 0.02, "intermediate_size": n_ff, "max_position_embeddings": 256, "mlp_bias": False,
        "model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
        "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
        "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                         "original_max_position_embeddings": 64, "rope_type": "llama3"},
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.52.0", "use_cache": True,
        "vocab_size": VOCAB,
        "quantization_config": {"modules_to_not_convert": ["lm_head"], "quant_method": "bitnet"}}
    write(folder, "config.json", config)
    write(folder, "tokenizer.json", byte_level(LLAMA_3, True, False, LLAMA_3_SPECIAL, "<|begin_of_text|>"))
    write(folder, "tokenizer_config.json", {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"})
    (folder / "chat_template.jinja").write_text("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}")
    model = load(folder)
    print(type(model.model.layers[0].mlp.up_proj))
    logits(model, "llama")
    del config["quantization_config"]
    model = LlamaForCausalLM(LlamaConfig(**config)).to(torch.float32).eval()
    model.load_state_dict(floats)
    logits(model, "llama.float")


def groups(*shape):
    """Ternary floats with a scale for every 64, exact in bf16."""
    rows, columns = shape
    codes, _ = ternarise(normal(rows, columns))
    scales = round_to(torch.bfloat16, 0.05 + 0.1 * torch.rand(rows, columns // 64, 1, generator=random))
    return (codes.reshape(rows, columns // 64, 64) * scales).reshape(rows, columns)


def qwen3():
    """Floats that are ternary in groups; YaRN; heads that are wider than the residual stream."""
    folder = fresh("qwen3")
    width, n_q, n_kv, n_ff, head = 64, 128, 64, 192, 64
    tensors = {"model.embed_tokens.weight": normal(VOCAB, width), "model.norm.weight": 1 + normal(width, scale=0.1)}
    for layer in range(2):
        prefix = f"model.layers.{layer}"
        norms(tensors, prefix, ["input_layernorm", "post_attention_layernorm"], width)
        norms(tensors, prefix, ["self_attn.q_norm", "self_attn.k_norm"], head)
        for name, shape in matrices(prefix, width, n_q, n_kv, n_ff).items():
            tensors[f"{name}.weight"] = groups(*shape)
    tensors = {name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write(folder, "config.json", {
        "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": 263, "eos_token_id": 265, "head_dim": head, "hidden_act": "silu", "hidden_size": width,
        "initializer_range": 0.02, "intermediate_size": n_ff, "max_position_embeddings": 256, "max_window_layers": 2,
        "model_type": "qwen3", "num_attention_heads": 2, "num_hidden_layers": 2, "num_key_value_heads": 1,
        "rms_norm_eps": 1e-06, "rope_theta": 1000000,
        "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 64, "rope_type": "yarn"},
        "sliding_window": None, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0", "use_cache": True, "use_sliding_window": False, "vocab_size": VOCAB})
    specials = [("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True), ("<think>", False), ("</think>", False)]
    write(folder, "tokenizer.json", byte_level(QWEN_2, False, True, specials))
    write(folder, "tokenizer_config.json", {
        "add_bos_token": False, "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
        "chat_template": [{"name": "tools", "template": "no"}, {"name": "default", "template": "{{ messages }}"}]})
    logits(load(folder), "qwen3")


def minicpm():
    """MiniCPM's scales, longrope, and a tokenizer as Sentencepiece's."""
    folder = fresh("minicpm")
    width, n_kv, n_ff, layers = 64, 32, 128, 2
    tensors = {"model.embed_tokens.weight": normal(VOCAB, width, scale=0.1), "model.norm.weight": 1 + normal(width, scale=0.1),
               "lm_head.weight": normal(VOCAB, width)}
    for layer in range(layers):
        prefix = f"model.layers.{layer}"
        norms(tensors, prefix, ["input_layernorm", "post_attention_layernorm"], width)
        for name, shape in matrices(prefix, width, width, n_kv, n_ff).items():
            codes, _ = ternarise(normal(*shape))
            tensors[f"{name}.weight"] = codes * 0.125
    tensors = {name: tensor.to(torch.float16) for name, tensor in tensors.items()}
    # Not the usual name.
    save_file(tensors, folder / "weights.safetensors")
    short = [1 + 0.05 * i for i in range(16)]
    long = [2 + 0.3 * i for i in range(16)]
    config = {
        "architectures": ["MiniCPMForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu",
        "hidden_size": width, "initializer_range": 0.1, "intermediate_size": n_ff, "max_position_embeddings": 256,
        "model_type": "minicpm", "num_attention_heads": 2, "num_hidden_layers": layers, "num_key_value_heads": 1,
        "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "tie_word_embeddings": False,
        "rope_scaling": {"rope_type": "longrope", "short_factor": short, "long_factor": long,
                         "original_max_position_embeddings": 256},
        "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 16, "torch_dtype": "float16", "use_cache": True,
        "vocab_size": VOCAB}
    write(folder, "config.json", config)
    write(folder, "tokenizer.json", sentencepiece())
    write(folder, "tokenizer_config.json", {"add_bos_token": True, "add_eos_token": False, "bos_token": "<s>",
                                            "eos_token": "</s>", "unk_token": "<unk>", "chat_template": "{{ messages }}"})
    floats = {name: tensor.to(torch.float32) for name, tensor in tensors.items()}
    floats["model.embed_tokens.weight"] *= config["scale_emb"]
    floats["lm_head.weight"] /= width / config["dim_model_base"]
    for name in floats:
        if "o_proj" in name or "down_proj" in name:
            floats[name] *= config["scale_depth"] / math.sqrt(layers)
    keys = ["hidden_act", "hidden_size", "intermediate_size", "max_position_embeddings", "num_attention_heads",
            "num_hidden_layers", "num_key_value_heads", "rms_norm_eps", "vocab_size", "tie_word_embeddings"]
    rope = config["rope_scaling"] | {"rope_theta": 10000.0, "factor": 1.0}
    model = LlamaForCausalLM(LlamaConfig(**{key: config[key] for key in keys}, rope_parameters=rope))
    model = model.to(torch.float32).eval()
    model.load_state_dict(floats)
    logits(model, "minicpm")


bitnet()
llama()
qwen3()
minicpm()
write(HERE, "tokens.json", TOKENS)
