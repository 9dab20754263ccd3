"""Trains a LoRA adapter for a ternary model, and writes it as a GGUF adapter.

    python lora.py BASE.gguf adapter.gguf --data mine.jsonl --steps 500

The base is a file of architecture `bitnet-b1.58` with I2_S. Its weights stay as they are. As in engines, the adapter
takes the input of a product before it is rounded to int8.
"""

import argparse
import os
from pathlib import Path

import torch
from torch.utils.data import DataLoader

import gguf
from data import Blocks, Mix
from export import ARCHITECTURE
from model import PRODUCTS, BitNet, Config, Lora
from tokenizer import Encoder
from train import REPORT_STEPS, batch, loss_of

F32_FILE_TYPE, F16_FILE_TYPE = 0, 1


def base_model(path):
    """The model of a GGUF file. Nothing of it is trained."""
    file = gguf.Reader(path)
    architecture = file.metadata["general.architecture"]
    if architecture != ARCHITECTURE:
        raise ValueError(f"{path} is {architecture}; this recipe trains adapters for {ARCHITECTURE}")
    get = lambda key: file.metadata[f"{architecture}.{key}"]
    embedding = file.tensors["token_embd.weight"]
    model = BitNet(
        Config(
            vocabulary=embedding.shape[0],
            width=embedding.shape[1],
            ffn=get("feed_forward_length"),
            blocks=get("block_count"),
            heads=get("attention.head_count"),
            kv_heads=get("attention.head_count_kv"),
            context=get("context_length"),
            rope_base=get("rope.freq_base"),
            eps=get("attention.layer_norm_rms_epsilon"),
        )
    )
    for name, product in model.products():
        product.freeze(*file.tensors[f"{name}.weight"])
    for name, parameter in model.named_parameters():
        if not isinstance(file.tensors[name], tuple):
            parameter.data = torch.tensor(file.tensors[name], dtype=torch.float32)
        parameter.requires_grad = False
    return model


def add_adapter(model, targets, rank, alpha):
    """Gives each product of `targets`, names such as attn_q, a delta of a rank."""
    unknown = set(targets) - set(PRODUCTS)
    if unknown or not targets:
        raise ValueError(f"targets are some of {', '.join(PRODUCTS)}, not {', '.join(sorted(unknown)) or 'none'}")
    if rank < 1:
        raise ValueError(f"rank {rank} must be 1 or more")
    for name, product in model.products():
        if name.rpartition(".")[2] in targets:
            product.lora = Lora(product.weight.shape[1], product.weight.shape[0], rank, alpha / rank)


def write_adapter(model, path, alpha, name="adapter", kind="f16"):
    """Writes the pairs of a model as llama.cpp has them: A [rank, in] and B [out, rank]."""
    metadata = [
        ("general.type", gguf.STRING, "adapter"),
        ("general.architecture", gguf.STRING, ARCHITECTURE),
        ("general.name", gguf.STRING, name),
        ("general.file_type", gguf.U32, {"f32": F32_FILE_TYPE, "f16": F16_FILE_TYPE}[kind]),
        ("general.quantization_version", gguf.U32, 2),
        ("adapter.type", gguf.STRING, "lora"),
        ("adapter.lora.alpha", gguf.F32, alpha),
    ]
    tensors = []
    for product_name, product in model.products():
        if product.lora is not None:
            for half in ("a", "b"):
                values = getattr(product.lora, half).detach().float().cpu().numpy()
                tensors.append((f"{product_name}.weight.lora_{half}", kind, values))
    gguf.write(path, metadata, tensors)


def train(model, blocks, begin, steps, rate, workers, device):
    """Trains the pairs; returns the mean losses of the first and the last steps."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)
    loader = iter(DataLoader(blocks, sampler=range(steps), batch_size=None, num_workers=workers))
    losses = []
    for step, block in enumerate(loader, 1):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1, step / 20) * (1 - (step - 1) / steps)
        loss = loss_of(model, *batch(block, begin, device))
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        losses.append(loss.item())
        if step % REPORT_STEPS == 0:
            print(f"step {step}  loss {sum(losses[-REPORT_STEPS:]) / REPORT_STEPS:.4f}", flush=True)
    few = max(1, steps // 5)
    return sum(losses[:few]) / few, sum(losses[-few:]) / few


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("out", type=Path)
    Mix.add_arguments(parser)
    parser.add_argument(
        "--targets",
        nargs="+",
        default=list(PRODUCTS),
        metavar="NAME",
        help="products that get a pair: all, or some of " + ", ".join(PRODUCTS),
    )
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=float, default=32.0)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rate", type=float, default=1e-3, help="the learning rate at the beginning; it falls to zero")
    parser.add_argument("--rows", type=int, default=8, help="rows of a step")
    parser.add_argument("--workers", type=int, default=1, help="processes that make rows")
    parser.add_argument("--type", choices=("f16", "f32"), default="f16")
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.manual_seed(options.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = base_model(options.base)
    add_adapter(model, options.targets, options.rank, options.alpha)
    model.to(device)
    blocks = Blocks(Mix.of(options), options.base, model.config.context, options.rows)
    first, last = train(
        model, blocks, Encoder(options.base).begin, options.steps, options.rate, options.workers, device
    )
    write_adapter(model, options.out, options.alpha, options.out.stem, options.type)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.2f} MB; loss {first:.3f} at first, {last:.3f} at last")


if __name__ == "__main__":
    main()
