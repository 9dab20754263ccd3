"""Trains a ternary model for a given time, from the beginning or on from the run before.

    python train.py RUN --tokenizer tokenizer.json --data stories.jsonl --seconds 3600
    python train.py RUN --resume --decay --data stories.jsonl --seconds 3600

Every run but the last keeps its learning rate; the last, with --decay, lets it fall to zero without weight decay,
which is when the ternary weights settle. RUN is a folder; checkpoint.py says what is in it.
"""

import argparse
import itertools
import json
import os
import shutil
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import checkpoint
from data import HELD_OUT, LEARNED, Blocks, Mix
from model import BitNet, Config
from tokenizer import Encoder

SHAPE = ("width", "ffn", "blocks", "heads", "kv_heads", "context")
REPORT_STEPS = 50
HELD_OUT_BLOCKS = 2
# Seconds for what comes after the last step: measuring and writing.
CLOSING_SECONDS = 15


def batch(block, begin, device):
    """(ids, targets, mask) of a block of rows. A target of -100 is not learned."""
    raw = torch.as_tensor(block).to(device, non_blocking=True)
    ids = (raw & LEARNED - 1).long()
    targets = F.pad(torch.where(raw >= LEARNED, ids, -100)[:, 1:], (0, 1), value=-100)
    documents = (ids == begin).cumsum(1)
    same = documents[:, :, None] == documents[:, None, :]
    return ids, targets, same.tril()[:, None]


def loss_of(model, ids, targets, mask):
    """Nats for a token that is learned."""
    logits = model(ids, mask).float()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


@torch.no_grad()
def held_out_loss(model, blocks, begin, device):
    held_out = (batch(blocks[HELD_OUT + n], begin, device) for n in range(HELD_OUT_BLOCKS))
    return sum(loss_of(model, *one).item() for one in held_out) / HELD_OUT_BLOCKS


def optimiser_of(model, rate, device):
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1]},
        {"params": [p for p in trained if p.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), weight_decay=0.1, fused=device == "cuda")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of the run")
    parser.add_argument("--tokenizer", help="tokenizer.json, as tokenizer.py makes it; needed for a new run")
    Mix.add_arguments(parser)
    parser.add_argument("--seconds", type=float, default=520, help="how long all of this may take, the start too")
    parser.add_argument("--max-steps", type=int, default=10**9)
    parser.add_argument("--resume", action="store_true", help="go on from state.pt, or else from part-*.npz")
    parser.add_argument("--decay", action="store_true", help="the last run: let the learning rate fall to zero")
    parser.add_argument("--rate", type=float, help="the learning rate at the beginning: 1.5e-3, or 1e-3 with --decay")
    parser.add_argument(
        "--warm-up", type=int, default=300, help="steps until it is reached, where the optimiser begins anew"
    )
    parser.add_argument("--rows", type=int, default=64, help="rows of a step")
    parser.add_argument(
        "--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes that make rows"
    )
    parser.add_argument("--parts", type=Path, help="a folder for the weights in files of less than 16 MB")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    for name in SHAPE:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="shape of a new model")
    return parser.parse_args()


def begun(options, device):
    """(model, optimiser, next block, tokens so far, whether the optimiser is new) of a run."""
    rate = options.rate or (1e-3 if options.decay else 1.5e-3)
    has_state = (options.run / "state.pt").exists()
    if not options.resume:
        if has_state:
            raise SystemExit(f"{options.run} has a run already: add --resume, or name another folder")
        if not options.tokenizer:
            raise SystemExit("A new run needs --tokenizer")
        options.run.mkdir(parents=True, exist_ok=True)
        shutil.copy(options.tokenizer, options.run / "tokenizer.json")
        shape = {name: getattr(options, name) for name in SHAPE if getattr(options, name)}
        vocabulary = Encoder(options.run / "tokenizer.json").size
        model = BitNet(Config(vocabulary=vocabulary, **shape)).to(device)
        return model, optimiser_of(model, rate, device), 0, 0, True
    model = checkpoint.read_model(options.run).to(device)
    optimiser = optimiser_of(model, rate, device)
    log = json.loads((options.run / "log.json").read_text())
    if has_state:
        state = checkpoint.read_state(options.run, device)
        optimiser.load_state_dict(state["optimiser"])
        return model, optimiser, state["next_block"], state["tokens"], False
    return model, optimiser, log["next_block"], log["tokens"], True


def main():
    options = arguments()
    start = time.monotonic()
    elapsed = lambda: time.monotonic() - start
    torch.manual_seed(options.seed)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, optimiser, next_block, tokens, is_new = begun(options, device)
    rate = options.rate or (1e-3 if options.decay else 1.5e-3)
    begin = Encoder(options.run / "tokenizer.json").begin
    blocks = Blocks(Mix.of(options), options.run / "tokenizer.json", model.config.context, options.rows)
    numbers = itertools.count(next_block)
    # The processes are started before the first product, so that they make rows while kernels are compiled.
    loader = iter(
        DataLoader(
            blocks,
            sampler=numbers,
            batch_size=None,
            num_workers=options.workers,
            prefetch_factor=8,
            pin_memory=device == "cuda",
        )
    )
    compiled = loss_of if options.no_compile or device == "cpu" else torch.compile(loss_of, dynamic=False)
    print(f"{model.parameter_count() / 1e6:.1f} million parameters on {device}, from block {next_block}", flush=True)

    losses, log, mark, waited = [], [], None, 0.0
    for step in range(options.max_steps):
        if step == 3:  # The first steps compile.
            if device == "cuda":
                torch.cuda.synchronize()
            mark, waited = (elapsed(), tokens), 0.0
            print(f"compiled after {mark[0]:.0f} s", flush=True)
        past = 0.0 if mark is None else (elapsed() - mark[0]) / max(1.0, options.seconds - CLOSING_SECONDS - mark[0])
        if past >= 1 or elapsed() > options.seconds - CLOSING_SECONDS:
            break
        if options.decay and options.max_steps < 10**9:
            past = step / options.max_steps
        now = rate * min(1.0, (step + 1) / options.warm_up if is_new else 1.0) * (1 - past if options.decay else 1)
        for group in optimiser.param_groups:
            group["lr"] = now
            group["weight_decay"] = 0.1 if group["params"][0].ndim > 1 and not options.decay else 0.0
        asked = elapsed()
        block = next(loader)
        waited += elapsed() - asked
        loss = compiled(model, *batch(block, begin, device))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        next_block, tokens = next_block + 1, tokens + block.numel()
        if len(losses) == REPORT_STEPS:
            mean = torch.stack(losses).mean().item()  # This also waits for the GPU, so that the clock is right.
            losses = []
            log.append({"tokens": tokens, "loss": round(mean, 4), "rate": now})
            if mark:
                speed = (tokens - mark[1]) / (elapsed() - mark[0])
                print(
                    f"{elapsed():4.0f} s  step {step + 1}  loss {mean:.4f}  rate {now:.2e}  {speed / 1e3:.0f}k tokens/s, {waited:.0f} s waited for rows",
                    flush=True,
                )
            if mean != mean:
                raise SystemExit(
                    "The loss is no number any more: nothing was written. Go on from the run before with a lower --rate"
                )

    held_out = held_out_loss(model, blocks, begin, device)
    print(f"{elapsed():4.0f} s  {tokens / 1e6:.1f} million tokens so far, held-out loss {held_out:.4f}", flush=True)
    checkpoint.write_state(options.run, model, optimiser, next_block, tokens)
    path = options.run / "log.json"
    earlier = json.loads(path.read_text())["losses"] if options.resume else []
    record = {"next_block": next_block, "tokens": tokens, "held_out": held_out, "losses": earlier + log}
    path.write_text(json.dumps(record) + "\n")
    if options.parts:
        options.parts.mkdir(parents=True, exist_ok=True)
        checkpoint.write_parts(model, options.parts)
        for name in ("log.json", "tokenizer.json"):
            shutil.copy(options.run / name, options.parts / name)
    # Processes that wait with rows would keep the program.
    del loader


if __name__ == "__main__":
    main()
