"""Rates of the card through PyTorch (cuBLAS), as one JSON document: what the rates of
concord bench stand beside. Medians of 30 runs, timed by events on the device."""
import json

import torch


def rate(work, run):
    for _ in range(5):
        run()
    times = []
    for _ in range(30):
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e6)  # ns
    times.sort()
    return work / times[len(times) // 2]


torch.backends.cuda.matmul.allow_tf32 = False
results = []


def note(name, unit, value):
    results.append({"name": name, "unit": unit, "median": value})


n = 4096
a, b = torch.rand(n, n, device="cuda"), torch.rand(n, n, device="cuda")
note(f"f32 {n}x{n}x{n}", "GFLOP/s", rate(2 * n**3, lambda: torch.mm(a, b)))
h, i = a.half(), b.half()
note(f"f16 {n}x{n}x{n}", "GFLOP/s", rate(2 * n**3, lambda: torch.mm(h, i)))
m = 1 << 28
x, y = torch.rand(m, device="cuda"), torch.rand(m, device="cuda")
note(f"copy {m} f32", "GB/s", rate(8 * m, lambda: y.copy_(x)))
note(f"saxpy {m} f32", "GB/s", rate(12 * m, lambda: y.add_(x, alpha=0.5)))
q, v = torch.rand(1024, 128, device="cuda"), torch.rand(1 << 16, 128, device="cuda")
note("squared distances 1024x65536x128", "GFLOP/s", rate(3 * 1024 * 65536 * 128, lambda: torch.cdist(q, v) ** 2))
print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "results": results}, indent=1))
