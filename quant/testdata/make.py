#!/usr/bin/env python3
# Makes ggml.safetensors: numbers, and what ggml's reference functions make of them.
#
#   python3 make.py libggml-base.so
#
# The library is part of every build of llama.cpp; the file is of that in node-llama-cpp 3.22.1 for Linux on x86-64.
import ctypes, json, random, struct, sys

lib = ctypes.CDLL(sys.argv[1])
rnd = random.Random(7)
gauss = lambda s: [rnd.gauss(0, s) for _ in range(256)]
blocks = [
    gauss(0.02), [1.0] * 256, [0.0] * 256, [rnd.choice((-0.7, 0.0, 0.7)) for _ in range(256)],
    [(i % 9 - 4) * 0.25 for i in range(256)], gauss(1e4), gauss(1e-6), [(-1) ** i * 0.3 for i in range(256)],
    [rnd.choice((-0.0, 0.0, -1.5, 0.75)) for _ in range(256)], [5.0 if i == 100 else 1e-3 for i in range(256)],
    [(i + 1) / 256 for i in range(256)], [-(i + 1) / 256 for i in range(256)],
    [rnd.gauss(0, 2.0 ** (i // 32 - 4)) for i in range(256)], [rnd.uniform(-1, 1) for _ in range(256)], gauss(3), gauss(0.5),
]


# Edges: blocks of runs of 16 or 32 numbers that alone give a scale or a reciprocal nothing to work with.
sizes = [1e-45, 1e-40, 1.1754944e-38, 1e-30, 9.9e-16, 1e-15, 5.96e-8, 1e-3, 1.0, 1e3]
runs = [
    lambda n, m: [0.0] * n, lambda n, m: [-0.0] * n, lambda n, m: [m] * n, lambda n, m: [-m] * n,
    lambda n, m: [m if i == 5 else 0.0 for i in range(n)], lambda n, m: [-m if i == 5 else m for i in range(n)],
    lambda n, m: [-abs(rnd.gauss(0, m)) for _ in range(n)], lambda n, m: [abs(rnd.gauss(0, m)) for _ in range(n)],
    lambda n, m: [rnd.choice((m, -m, 0.0, -0.0)) for _ in range(n)], lambda n, m: [m * rnd.randint(-8, 8) for _ in range(n)],
    lambda n, m: [rnd.gauss(0, m) for _ in range(n)],
]
edges = []
for i in range(48):
    n = (16, 32)[i % 2]
    for _ in range(0, 256, n):
        edges.append(rnd.choice(runs)(n, rnd.choice(sizes)))

entries = {}


def add(prefix, blocks):
    x = [v for b in blocks for v in b]
    xs = (ctypes.c_float * len(x))(*x)
    entries[prefix + "x"] = ("F32", [len(x)], bytes(xs))
    for name, fn, numbers, size in (("Q4_0", "q4_0", 32, 18), ("Q5_0", "q5_0", 32, 22), ("Q8_0", "q8_0", 32, 34), ("Q5_K", "q5_K", 256, 176), ("Q4_K", "q4_K", 256, 144),
                                    ("Q6_K", "q6_K", 256, 210), ("TQ1_0", "tq1_0", 256, 54), ("TQ2_0", "tq2_0", 256, 66)):
        out = (ctypes.c_uint8 * (len(x) // numbers * size))()
        getattr(lib, f"quantize_row_{fn}_ref")(xs, out, ctypes.c_int64(len(x)))
        entries[prefix + name] = ("U8", [len(out)], bytes(out))
        if not prefix:
            back = (ctypes.c_float * len(x))()
            getattr(lib, f"dequantize_row_{fn}")(out, back, ctypes.c_int64(len(x)))
            entries[name + ".decoded"] = ("F32", [len(x)], bytes(back))


add("", blocks)
add("edges.", edges)
head, data = {}, b""
for name, (kind, shape, raw) in sorted(entries.items(), key=lambda e: (e[1][0], e[0])):
    head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(head).encode()
text += b" " * (-(len(text) + 8) % 64)
open("ggml.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
