"""`npm run train:smoke`: the whole recipe on a tiny model, in a minute. Ends with 1 if something is not right."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Two programs that compute with all cores wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch

import check
import checkpoint
import generate
from tokenizer import Encoder

HERE = Path(__file__).parent
SHAPE = "--width 128 --ffn 256 --blocks 2 --heads 4 --kv-heads 2 --context 128 --rows 8 --workers 1".split()
STEPS = 80
# A model that has learned nothing has some 6.4 nats, the logarithm of its vocabulary.
MAX_LOSS = 5.2
DECLINE = "I would rather talk about lighthouses."


def run(script, *arguments):
    subprocess.run([sys.executable, HERE / script, *map(str, arguments)], check=True)


def expect(is_right, what):
    if not is_right:
        raise SystemExit(f"Not right: {what}")
    print(f"right: {what}", flush=True)


def check_generator():
    import random

    documents = [generate.document(random.Random(n)) for n in range(500)]
    expect(
        documents[:50] == [generate.document(random.Random(n)) for n in range(50)],
        "the generator writes the same again",
    )
    said = {message["content"] for document in documents if isinstance(document, list) for message in document}
    expect(
        not said & generate.judged() and len(generate.judged()) == 100, "no prompt of models/prompts.json is learned"
    )
    expect(
        generate.is_judged("i want a story about a goat in a library!")
        and not generate.is_judged("A story about a goat"),
        "a prompt in other words is known, its subject alone is not",
    )


def check_levels():
    # Trained weights have outer levels with far tails.
    weight = torch.randn(640, 640, generator=torch.Generator().manual_seed(0)) ** 3
    read = checkpoint.of_levels(*checkpoint.to_levels(weight), weight.shape)
    codes = lambda weight: (weight / weight.abs().mean()).round().clamp(-1, 1)
    expect(torch.equal(codes(weight), codes(read)), "levels keep the codes of weights with far tails")


def check_training(folder):
    tokenizer, trained, model = folder / "tokenizer.json", folder / "run", folder / "model.gguf"
    run("tokenizer.py", tokenizer, "--size", 600, "--documents", 2000, "--generate", 1)
    common = ["--generate", 1, "--seconds", 300, "--warm-up", 10, "--rate", 4e-3]
    run(
        "train.py",
        trained,
        "--tokenizer",
        tokenizer,
        *common,
        *SHAPE,
        "--max-steps",
        STEPS,
        "--parts",
        folder / "parts",
    )
    # A machine whose disk is lost goes on from the parts.
    run(
        "train.py",
        folder / "parts",
        "--resume",
        "--decay",
        *common,
        "--rows",
        8,
        "--workers",
        1,
        "--max-steps",
        STEPS // 2,
    )
    logs = [json.loads((folder / name / "log.json").read_text()) for name in ("run", "parts")]
    expect(
        logs[0]["next_block"] == STEPS and logs[1]["next_block"] == STEPS * 3 // 2,
        "a run goes on with the blocks that follow",
    )
    expect(
        logs[1]["held_out"] < logs[0]["held_out"] < MAX_LOSS,
        f"the model learns: {logs[0]['held_out']:.2f}, then {logs[1]['held_out']:.2f} nats",
    )

    before, after = checkpoint.read_model(trained), checkpoint.read_parts(write_again(trained, folder))
    codes = lambda network: [product.ternary()[0].round() for _, product in network.products()]
    expect(all(map(torch.equal, codes(before), codes(after))), "the parts have the same ternary weights")

    run("export.py", trained, model, "--licence", "mit")
    encoder = Encoder(trained / "tokenizer.json")
    expect(check.check_model(before, encoder, model), "the engine computes what was trained")
    text = "Ünïcode, 12 345 and <|eot_id|>!"
    expect(Encoder(model).encode(text) == encoder.encode(text), "the file has the vocabulary")
    return model


def write_again(trained, folder):
    again = folder / "again"
    again.mkdir()
    checkpoint.write_parts(checkpoint.read_model(trained), again)
    return again


def check_adapter(folder, base):
    data, adapter = folder / "mine.jsonl", folder / "adapter.gguf"
    rows = [
        [{"role": "user", "content": question}, {"role": "assistant", "content": DECLINE}] for question in check.TEXTS
    ]
    data.write_text("".join(json.dumps({"messages": messages}) + "\n" for messages in rows))
    run(
        "lora.py",
        base,
        adapter,
        "--data",
        data,
        "--steps",
        60,
        "--rank",
        4,
        "--alpha",
        8,
        "--rows",
        2,
        "--rate",
        5e-3,
        "--targets",
        "attn_q",
        "attn_v",
        "ffn_down",
        "attn_output",
    )
    expect(check.check_adapter(base, adapter), "the adapter's file has the deltas that were trained, and the engine applies them")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_generator()
        check_levels()
        check_adapter(folder, check_training(folder))


if __name__ == "__main__":
    main()
