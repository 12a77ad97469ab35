#!/usr/bin/env python3
"""Writes a small language model with random weights from a fixed seed, as a GGUF file that llama.cpp loads.

Usage: gguf_model.py FILE [--types k-quants|q8_0|q4_0|f16|f32] [--experts N] [--seed N]

The architecture is `llama` (grouped-query attention, RoPE, SwiGLU; with --experts a mixture of experts). The same arguments
give the same bytes on every machine. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3; the
layouts of quantised blocks are those of ggml-common.h.
"""
import argparse
import random
import struct

EMBEDDING, HEADS, KV_HEADS, FEED_FORWARD, LAYERS, CONTEXT = 256, 4, 2, 512, 2, 512
HEAD = EMBEDDING // HEADS
ALIGNMENT = 32

U32, F32, STRING, ARRAY, BOOL, I32 = 4, 6, 8, 9, 7, 5

# name: (ggml_type, elements of a block, bytes of a block)
TYPES = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144), "q6_k": (14, 256, 210)}


def half(value):
    return struct.pack("<e", value)


def random_blocks(rng, type_name, count, deviation):
    """`count` blocks of random weights with about the standard deviation that keeps a layer's output near its input's size."""
    out = bytearray()
    for _ in range(count):
        if type_name == "f32":
            out += struct.pack("<f", rng.gauss(0, deviation))
        elif type_name == "f16":
            out += half(rng.gauss(0, deviation))
        elif type_name == "q8_0":  # d, 32 signed bytes
            out += half(deviation / 73) + rng.randbytes(32)
        elif type_name == "q4_0":  # d, 32 nibbles of value + 8
            out += half(deviation / 4.6) + rng.randbytes(16)
        elif type_name == "q4_k":  # d, dmin, 12 bytes of 6-bit scales and minima (here equal, so that the mean is 0), 256 nibbles
            first, last = rng.randbytes(4), bytes(17 * (byte & 15) for byte in rng.randbytes(4))
            out += half(deviation / 167) + half(7.5 * deviation / 167) + first + first + last + rng.randbytes(128)
        else:  # q6_k: 128 + 64 bytes of 6-bit values, 16 signed scales, d
            out += rng.randbytes(208) + half(deviation / 1370)
    return bytes(out)


class Writer:
    def __init__(self):
        self.values, self.value_count, self.tensors = bytearray(), 0, []

    @staticmethod
    def text(string):
        data = string.encode()
        return struct.pack("<Q", len(data)) + data

    def value(self, key, kind, value):
        packed = {U32: "<I", F32: "<f", BOOL: "<?", I32: "<i"}
        self.values += self.text(key) + struct.pack("<I", kind)
        self.values += self.text(value) if kind == STRING else struct.pack(packed[kind], value)
        self.value_count += 1

    def array(self, key, kind, items):
        self.values += self.text(key) + struct.pack("<IIQ", ARRAY, kind, len(items))
        packed = {F32: "<f", I32: "<i"}
        for item in items:
            self.values += self.text(item) if kind == STRING else struct.pack(packed[kind], item)
        self.value_count += 1

    def tensor(self, name, shape, type_name, data):
        self.tensors.append((name, shape, type_name, data))

    def write(self, path):
        header = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), self.value_count)) + self.values
        offset = 0
        for name, shape, type_name, data in self.tensors:
            header += self.text(name) + struct.pack("<I", len(shape))
            for extent in shape:
                header += struct.pack("<Q", extent)
            header += struct.pack("<IQ", TYPES[type_name][0], offset)
            offset += -(-len(data) // ALIGNMENT) * ALIGNMENT
        header += bytes(-len(header) % ALIGNMENT)
        with open(path, "wb") as file:
            file.write(header)
            for _, _, _, data in self.tensors:
                file.write(data + bytes(-len(data) % ALIGNMENT))


def vocabulary():
    """A SentencePiece-like vocabulary: control tokens, all bytes, some words."""
    tokens = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    tokens += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    tokens += [("\u2581", -1.0, 1)] + [(letter, -2.0 - index, 1) for index, letter in enumerate(letters)]
    pairs = [first + second for first in letters for second in letters]
    return tokens + [(pair, -100.0 - index, 1) for index, pair in enumerate(pairs)][: 512 - len(tokens)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--types", default="k-quants", choices=["k-quants", "q8_0", "q4_0", "f16", "f32"])
    parser.add_argument("--experts", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    out = Writer()
    tokens = vocabulary()

    out.value("general.architecture", STRING, "llama")
    out.value("general.name", STRING, "kerncap test model")
    out.value("general.alignment", U32, ALIGNMENT)
    for key, number in (("context_length", CONTEXT), ("embedding_length", EMBEDDING), ("block_count", LAYERS),
                        ("feed_forward_length", FEED_FORWARD), ("attention.head_count", HEADS),
                        ("attention.head_count_kv", KV_HEADS), ("rope.dimension_count", HEAD), ("vocab_size", len(tokens))):
        out.value(f"llama.{key}", U32, number)
    if options.experts:
        out.value("llama.expert_count", U32, options.experts)
        out.value("llama.expert_used_count", U32, 2)
    out.value("llama.attention.layer_norm_rms_epsilon", F32, 1e-5)
    out.value("llama.rope.freq_base", F32, 10000.0)
    out.value("tokenizer.ggml.model", STRING, "llama")
    out.array("tokenizer.ggml.tokens", STRING, [token[0] for token in tokens])
    out.array("tokenizer.ggml.scores", F32, [token[1] for token in tokens])
    out.array("tokenizer.ggml.token_type", I32, [token[2] for token in tokens])
    for key, number in (("bos", 1), ("eos", 2), ("unknown", 0)):
        out.value(f"tokenizer.ggml.{key}_token_id", U32, number)

    def weights(name, *shape, precise=False):
        type_name = {True: "q6_k", False: "q4_k"}[precise] if options.types == "k-quants" else options.types
        _, per_block, _ = TYPES[type_name]
        count = 1
        for extent in shape:
            count *= extent
        out.tensor(name + ".weight", shape, type_name, random_blocks(rng, type_name, count // per_block, shape[0] ** -0.5))

    def norm(name):
        data = b"".join(struct.pack("<f", 1 + rng.gauss(0, 0.1)) for _ in range(EMBEDDING))
        out.tensor(name + ".weight", (EMBEDDING,), "f32", data)

    weights("token_embd", EMBEDDING, len(tokens), precise=True)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        norm(block + "attn_norm")
        weights(block + "attn_q", EMBEDDING, HEADS * HEAD)
        weights(block + "attn_k", EMBEDDING, KV_HEADS * HEAD)
        weights(block + "attn_v", EMBEDDING, KV_HEADS * HEAD, precise=True)
        weights(block + "attn_output", HEADS * HEAD, EMBEDDING)
        norm(block + "ffn_norm")
        if options.experts:
            data = random_blocks(rng, "f32", EMBEDDING * options.experts, EMBEDDING ** -0.5)
            out.tensor(block + "ffn_gate_inp.weight", (EMBEDDING, options.experts), "f32", data)
            weights(block + "ffn_gate_exps", EMBEDDING, FEED_FORWARD, options.experts)
            weights(block + "ffn_up_exps", EMBEDDING, FEED_FORWARD, options.experts)
            weights(block + "ffn_down_exps", FEED_FORWARD, EMBEDDING, options.experts, precise=True)
        else:
            weights(block + "ffn_gate", EMBEDDING, FEED_FORWARD)
            weights(block + "ffn_up", EMBEDDING, FEED_FORWARD)
            weights(block + "ffn_down", FEED_FORWARD, EMBEDDING, precise=True)
    norm("output_norm")
    weights("output", EMBEDDING, len(tokens), precise=True)
    out.write(options.file)


if __name__ == "__main__":
    main()
