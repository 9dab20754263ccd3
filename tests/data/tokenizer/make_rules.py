"""Writes rules.json: small vocabularies, and the tokens of hard texts under each set of rules.

    pip install tokenizers sentencepiece protobuf && python3 tests/data/tokenizer/make_rules.py

Byte-level BPE is checked against Hugging Face's `tokenizers`, whose regular expressions run on
another engine (Oniguruma), and against the plain merging loop below. SentencePiece's BPE is checked
against Google's `sentencepiece`. Texts and vocabularies are this project's own.
"""
import io
import json
import random
from pathlib import Path

import sentencepiece
import tokenizers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = Path(__file__).parent
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)

# As published for each model family.
GPT_2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
           r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
FALCON = [r"[\p{P}\$\+<=>\^~\|`]+", GPT_2]
PRE_TOKENIZERS = {
    "llama-bpe": [LLAMA_3],
    "qwen2": [LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")],
    "gpt-2": [GPT_2],
    "falcon": FALCON + ["[0-9][0-9][0-9]"],
    "falcon3": FALCON + ["[0-9]"],
    "falcon_e": FALCON + ["[0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT_2, r"\p{N}+", "[0-9][0-9][0-9]"],
}


def texts():
    """Texts at the edges of the rules, and random mixtures of them."""
    edges = [
        "", " ", "  ", "   ", "     ", "\t", "\n", "\n\n", "\r\n", " \n", "\n ", "\t\n\t", "a\n", "a \n b", "a\n\n\n  b",
        "Hello, world!", " hello", "Hello  world", "hello", "   hello    hello", "the cat and the hat", " the  the   the",
        "I'm you're HE'S we'LL they'd I'VE can't 'twas", "'s 'S 'ſ", "’s", "don''t", "O'Reilly's ''double''",
        "1", "12", "123", "1234", "1234567", "12345678", "3.14159", "1,000,000", "a1b22c333d4444", "1 12 123", "x=1;y=22",
        "１２３４", "²³¹", "½ Ⅳ", "٠١٢٣٤٥", "४५६७", "0x1F600 -2e10",
        "!", "!!", "! !", "...", "?!\n", "a...b", " ...", "(a)", "[[x]]", "--\n\n--", "#$%&*+", "\"quoted\"", "!?)\n\n x",
        "`code` ``two`` ```three```", "$5 + €2 = £7 ^ 2 | 5 ~ 6 < 7 > 8", "`", "a`b", "<=>", "~~~\n```\n",
        "über", "Ünïcödé", "é", "naïve café", "ß", "İi", "\u00a0x", "x\u00a0", "\u2003", "\u3000", "foo\u00a0bar\u2003baz",
        "日本語のテキスト", "中文，测试。123个", "한국어 문장", "हिन्दी में", "العربية", "ไทย", "Ελληνικά", "кириллица",
        "🙂", "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "a🙂b", "❤️", "\u200b", "a\u200bb", "\ufeffa", "\u2028", "\u0085", "\x00", "\x7f", "\x1b[0m",
        "fn main() { println!(\"{}\", 1 << 2); }", "https://example.org/a?b=c&d=%20", "C:\\temp\\x",
        "  indented\n    more\n", "tab\tseparated", "trailing   ", "\n\n\n  x", "camelCase snake_case", "camel Reilly",
        "▁ lower ▁▁ block", "Ġ Ċ letters", "<0x41> <0x", "aaaaaaaaaaaaaaaaaaaaa", "ababababab",
    ]
    mix = random.Random(2)
    return edges + ["".join(mix.choices(edges, k=mix.randint(2, 5))) for _ in range(40)]


# Texts that normal form C changes, and some that it leaves as they are.
DECOMPOSED = [
    "e\u0301 vs \u00e9", "Cafe\u0301 nai\u0308ve", "A\u030angstro\u0308m \u212b \u2126 \u212a", "q\u0323\u0307 q\u0307\u0323",
    "\u1112\u1161\u11ab\u1100\u1173\u11af", "\u0958 \u0915\u093c", "\ufb01 \u00bd \u2460", "\u0301x", "a\u0300\u0301\u0302",
    "\u2adc \u0344", "\u3060 \u305f\u3099",
]


def corpus():
    """What the vocabularies are trained on."""
    words = ("the cat and the hat sat on a mat ; hello world , hello there ! I'm sure you're there , it's 12 of 345 . "
             "don't they'll we've can't naïve café über hello HELLO Hello _the_ (the) code code ``` ``` ... !!! ab abab "
             "12 123 1234 12345 2024 2025 100 1000 日本 日本語 привет мир é é ñ ö").split(" ")
    mix = random.Random(1)
    lines = [" ".join(mix.choices(words, k=12)) for _ in range(300)]
    return lines + [line.replace(" ", "  ", 2) + "\n\n" for line in lines[:100]]


def merge(word, ranks):
    """The plain loop: the best pair first, the leftmost of equal ones."""
    symbols = list(word)
    while len(symbols) > 1:
        best = min(range(len(symbols) - 1), key=lambda i: ranks.get((symbols[i], symbols[i + 1]), 1 << 30))
        if (symbols[best], symbols[best + 1]) not in ranks:
            break
        symbols[best:best + 2] = [symbols[best] + symbols[best + 1]]
    return symbols


def bpe_vocabulary():
    """Tokens, types and merges of byte-level BPE, trained without a pre-tokenizer's limits on digits and signs."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(vocab_size=560, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [tuple(merge) for merge in model["merges"]]
    # No merges lead to these: they are found where merges are ignored.
    tokens += ["ĠReilly", "camel"]
    types = [NORMAL] * len(tokens)
    for token, kind in [
        ("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL), ("<unk>", UNKNOWN),
        ("<think>", USER_DEFINED), ("</think>", USER_DEFINED), ("<think>\n", USER_DEFINED), ("[gap]", UNUSED),
        # Real files have such tokens as normal ones. They end an answer all the same.
        ("</s>", NORMAL),
    ]:
        tokens.append(token)
        types.append(kind)
    return tokens, types, merges


SPECIAL_TEXTS = [
    "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n", "a<|endoftext|>b <|endoftext|> c",
    "<think>a</think>b", " <think> x </think> ", "<think>\n\n</think>\n\n", "<|im_start|><|im_start|>", "<|im_end|", "<|im_star t|>",
    "hello</s> world<unk>", "[gap]", "no special token", "e\u0301<think>e\u0301",
]


def bpe():
    tokens, types, merges = bpe_vocabulary()
    ids = {token: id for id, token in enumerate(tokens)}
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    words = {token: id for token, id in ids.items() if types[id] == NORMAL and token != "</s>"}
    user_defined = [token for token, kind in zip(tokens, types) if kind == USER_DEFINED]
    special = user_defined + [token for token, kind in zip(tokens, types) if kind in (CONTROL, UNKNOWN)] + ["</s>"]

    def build(name, added):
        tokenizer = Tokenizer(models.BPE(words, merges, ignore_merges=name == "llama-bpe"))
        splits = [pre_tokenizers.Split(Regex(regex), "isolated") for regex in PRE_TOKENIZERS[name]]
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits + [byte_level])
        if name == "qwen2":
            tokenizer.normalizer = normalizers.NFC()
        named = {}
        for token in added:
            tokenizer.add_tokens([AddedToken(token, normalized=False)])
            named[tokenizer.token_to_id(token)] = ids[token]

        def encode(text):
            normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
            if not added and name != "llama-bpe":
                plain = [ids[part] for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal) for part in merge(word, ranks)]
                assert plain == tokenizer.encode(text).ids, text
            return [named.get(id, id) for id in tokenizer.encode(text).ids]
        return encode

    rules = []
    for name in PRE_TOKENIZERS:
        none, some, all = build(name, []), build(name, user_defined), build(name, special)
        rules.append({
            "pre": name,
            "plain": [{"text": text, "ids": none(text)} for text in texts() + DECOMPOSED],
            "special": [{"text": text, "text_only": none(text), "user_defined": some(text), "all": all(text)}
                        for text in SPECIAL_TEXTS],
        })
    # No two rules are the same, but for the two names of one.
    for i, one in enumerate(rules):
        for other in rules[:i]:
            same = one["plain"] == other["plain"]
            assert same == ({one["pre"], other["pre"]} == {"falcon3", "falcon_e"}), (one["pre"], other["pre"])
    return {"tokens": tokens, "types": types, "merges": [" ".join(merge) for merge in merges], "rules": rules}


def sentence_piece(prefix):
    """SentencePiece's BPE with scores as in Llama 2: all runs of spaces have the same."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model, model_type="bpe", vocab_size=480, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, add_dummy_prefix=True, character_coverage=0.98,
        control_symbols=["<|im_start|>", "<|im_end|>"], pad_id=-1, minloglevel=2,
    )
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    known = {piece.piece for piece in proto.pieces}
    for piece in proto.pieces:
        if set(piece.piece) == {"▁"}:
            piece.score = -1e9
    for n in range(2, 9):
        if "▁" * n not in known:
            proto.pieces.add(piece="▁" * n, score=-1e9)
    proto.normalizer_spec.add_dummy_prefix = prefix
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    kinds = {1: NORMAL, 2: UNKNOWN, 3: CONTROL, 4: USER_DEFINED, 5: UNUSED, 6: BYTE}
    tokens = [piece.piece for piece in proto.pieces] + ["<think>", "</think>"]
    types = [kinds[piece.type] for piece in proto.pieces] + [USER_DEFINED] * 2
    scores = [piece.score for piece in proto.pieces] + [0.0] * 2
    return processor, tokens, types, scores


# Texts between special tokens: each begins anew.
SPM_SPECIAL = [
    ["<|im_start|>", "user\nHello", "<|im_end|>", "\n", "<|im_start|>", "assistant\n"],
    ["<think>", "a", "</think>", "b"], [" ", "<think>", " x ", "</think>", " "], ["<s>", "hello", "</s>", " world", "<unk>"],
    ["<|im_start|>", "<|im_start|>"], ["<|im_end|"], ["x", "<s>", " y", "</s>", "z"], ["hello", "<think>", "hello"],
]


def spm():
    rules = []
    for prefix in (True, False):
        processor, tokens, types, scores = sentence_piece(prefix)
        ids = {token: id for id, token in enumerate(tokens)}

        def encode(parts, kinds):
            """With tokens of some kinds recognised; the parts between them are one text each."""
            found, text = [], ""
            for part in parts:
                if part in ids and types[ids[part]] in kinds:
                    found += processor.encode(text) + [ids[part]]
                    text = ""
                else:
                    text += part
            return found + processor.encode(text)

        rules.append({
            "prefix": prefix,
            "plain": [{"text": text, "ids": processor.encode(text)} for text in texts() + DECOMPOSED],
            "special": [{"text": "".join(parts), "text_only": encode(parts, []), "user_defined": encode(parts, [USER_DEFINED]),
                         "all": encode(parts, [USER_DEFINED, CONTROL, UNKNOWN])} for parts in SPM_SPECIAL],
        })
    assert rules[0]["plain"] != rules[1]["plain"]
    return {"tokens": tokens, "types": types, "scores": scores, "rules": rules}


def main():
    made = {"bpe": bpe(), "spm": spm()}
    out = []
    for model, data in made.items():
        lists = [f'"{key}": {json.dumps(data[key], ensure_ascii=False, separators=(",", ":"))}' for key in data if key != "rules"]
        rules = []
        for rule in data["rules"]:
            lines = [f'{json.dumps(key)}: {json.dumps(value)}' for key, value in rule.items() if not isinstance(value, list)]
            for key in ("plain", "special"):
                rows = ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rule[key])
                lines.append(f'"{key}": [\n{rows}\n]')
            rules.append("{" + ", ".join(lines) + "}")
        out.append(f'"{model}": {{' + ",\n".join(lists) + ',\n"rules": [\n' + ",\n".join(rules) + "\n]}")
    (HERE / "rules.json").write_text("{\n" + ",\n".join(out) + "\n}\n")
    counts = {model: [len(rule["plain"]) + len(rule["special"]) for rule in data["rules"]] for model, data in made.items()}
    print(counts, "by tokenizers", tokenizers.__version__, "and sentencepiece", sentencepiece.__version__)


main()
