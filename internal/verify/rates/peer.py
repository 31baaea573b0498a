"""The work of package rates by PyTorch. The argument is a device, such as "cuda:0" or "cpu".

It first writes who it is, {"peer": "PyTorch 2.11.0+cu130"}, or {"error": ...}. Each line that it reads is a request as
JSON, each further line that it writes the answer:

  {"call": "gemm", "args": {"n": 1000, "type": "f32"}}  prepare a call, make it once  -> {"note": "in what it differs"}
  {"run": 3}                                            make the call three times     -> {"ns": those of one}
  {"drop": true}                                        forget it and its memory      -> {}

or {"error": ...}. The process ends when its input does, whatever it does then.
"""
import sys

sys.path[:] = [p for p in sys.path if p]  # the working directory has no modules for us
import json, os, queue, threading, time

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what libraries print must not mix with the answers
requests = queue.Queue()


def read():
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def say(answer):
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


threading.Thread(target=read, daemon=True).start()
try:
    import torch
    import torch.nn.functional as F
    device = torch.device(sys.argv[1])
    GPU = device.type == "cuda"
    if GPU:
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch %s sees no GPU" % torch.__version__)
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = False  # products of float32 are of float32
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True  # the fastest convolution, as a training would choose it
        torch.zeros(1, device=device)
    elif os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
except Exception as e:
    say({"error": "%s: %s" % (type(e).__name__, e)})
    os._exit(0)  # the thread that reads would disturb another end

TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def rand(*shape, type="f32"):
    return (torch.rand(*shape, device=device) + 0.5).to(TYPES[type])


def sync():
    if GPU:
        torch.cuda.synchronize()


def by_host(run, n):
    sync()
    start = time.perf_counter_ns()
    for _ in range(n):
        run()
    sync()
    return (time.perf_counter_ns() - start) / n


def by_device(run, n):
    """Of the time between two events, as the device's stream has it."""
    if not GPU:
        return by_host(run, n)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(n):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e6 / n


# Each call returns what it runs and, where there are others than the usual ones, a note and how it is timed.

def copy(n):
    x, y = rand(n), torch.empty(n, device=device)
    return lambda: y.copy_(x)


def gemm(n, type):
    x, y, z = rand(n, n, type=type), rand(n, n, type=type), torch.empty(n, n, device=device, dtype=TYPES[type])
    return lambda: torch.mm(x, y, out=z), "TF32 off" if GPU and type == "f32" else ""


def softmax(rows, columns):
    x = rand(rows, columns)
    return lambda: torch.softmax(x, 1)


def layer_norm(rows, columns):
    x, g, b = rand(rows, columns), rand(columns), rand(columns)
    return lambda: F.layer_norm(x, (columns,), g, b)


def expression(n, operations):
    x, y = rand(n), rand(n)
    run = {
        1: lambda: x + y,
        4: lambda: (x * y + x) * 0.5 - y,
        8: lambda: (torch.relu((x * y + x) * 0.5 - y) + y) * x - 0.25,
    }[operations]
    return run, "eager: each operation is a kernel" if operations > 1 else ""


def reduction(rows, columns, axes):
    x = rand(rows, columns)
    return lambda: x.sum(axes[0]) if axes else x.sum()


def convolution(image, filters, stride, pad, groups):
    x, w = rand(*image), rand(*filters)
    return lambda: F.conv2d(x, w, None, stride, pad, 1, groups), "TF32 off" if GPU else ""


def attention(shape, causal, type):
    q, k, v = (rand(*shape, type=type) for _ in range(3))
    if hasattr(F, "scaled_dot_product_attention"):
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    mask = torch.full((shape[2], shape[2]), float("-inf"), device=device, dtype=q.dtype).triu(1)

    def run():
        s = torch.matmul(q, k.transpose(2, 3)) * shape[3] ** -0.5
        return torch.matmul(torch.softmax(s + mask if causal else s, 3), v)
    return run, "by products and a softmax"


def nearest(vectors, dim, queries, k, half):
    """Squared distances by products, and the smallest of each query. Queries come from the host, results go there."""
    x = rand(vectors, dim)
    norms = (x * x).sum(1)
    if half:
        x, norms = x.half(), norms.half()
    q = torch.rand(queries, dim) + 0.5

    def run():
        d = torch.addmm(norms, q.to(device).to(x.dtype), x.t(), alpha=-2)
        values, places = torch.topk(d, k, dim=1, largest=False)
        return values.cpu(), places.cpu()
    return run, "matrix product and topk", by_host


def vector(rows, columns):
    """Weights of 16 bits where there are such products: PyTorch has none of fewer bits."""
    type = "f16" if GPU else "f32"
    w, x = rand(rows, columns, type=type), rand(columns, type=type)
    return lambda: torch.mv(w, x), "with weights of " + type


def mlp(batch, steps):
    n = torch.nn
    net = n.Sequential(n.Linear(784, 512), n.ReLU(), n.Linear(512, 256), n.ReLU(), n.Linear(256, 10))
    return training(net, (784,), batch, steps)


def cnn(batch, steps):
    n = torch.nn
    net = n.Sequential(n.Conv2d(1, 32, 3), n.ReLU(), n.Conv2d(32, 64, 3), n.ReLU(), n.MaxPool2d(2), n.Flatten(),
                       n.Linear(9216, 128), n.ReLU(), n.Linear(128, 10))
    return training(net, (1, 28, 28), batch, steps)


def training(net, shape, batch, steps):
    """Steps with one batch that is there: cross entropy, backward, Adam. On a GPU as a graph, if it can be captured."""
    net = net.to(device)
    optimizer = torch.optim.Adam(net.parameters(), 0.001, **({"capturable": True} if GPU else {}))
    x, labels, loss = rand(batch, *shape), torch.arange(batch, device=device) % 10, torch.nn.CrossEntropyLoss()

    def step():
        with torch.enable_grad():
            optimizer.zero_grad(set_to_none=True)
            loss(net(x), labels).backward()
        optimizer.step()

    def eager():
        for _ in range(steps):
            step()
    eager()
    if not GPU:
        return eager, "one batch that is there"
    rate = steps * 1e9 / by_host(eager, 1)
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            step()
    except Exception as e:
        return eager, "eager, one batch that is there; no graph: %s" % e, by_host

    def replay():
        for _ in range(steps):
            graph.replay()
    return replay, "as a graph, TF32 off, one batch that is there; eager: %.3g /s" % rate, by_host


def launch_queued():
    y = rand(1)

    def queue(run, n):
        sync()
        took, left = 0, n
        while left > 0:
            now, left = min(left, 200), left - 200
            start = time.perf_counter_ns()
            for _ in range(now):
                run()
            took += time.perf_counter_ns() - start
            sync()
        return took / n
    return lambda: y.add_(1), "", queue


def launch_and_wait():
    y = rand(1)

    def run():
        y.add_(1)
        sync()
    return run, "", by_host


def launches(n):
    y = rand(1)

    def run():
        for _ in range(n):
            y.add_(1)
    return run


def graph(n):
    if not GPU:
        raise ValueError("PyTorch has no graphs here")
    y, g = rand(1), torch.cuda.CUDAGraph()
    y.add_(1)
    sync()
    with torch.cuda.graph(g):
        for _ in range(n):
            y.add_(1)
    return g.replay


def transfer(n, down, pinned):
    if pinned and not GPU:
        raise ValueError("PyTorch has no pinned memory here")
    h, d = torch.ones(n, dtype=torch.uint8), torch.ones(n, dtype=torch.uint8, device=device)
    if pinned:
        h = h.pin_memory()
    to, source = (h, d) if down else (d, h)
    return (lambda: to.copy_(source, non_blocking=pinned)), "", by_device if pinned else by_host


def answer(request, call):
    if "call" in request:
        made = globals()[request["call"]](**(request.get("args") or {}))
        if not isinstance(made, tuple):
            made = (made,)
        run, note, clock = made + ("", by_device)[len(made) - 1:]
        call[:] = [run, clock]
        run()
        sync()
        return {"note": note}
    if "run" in request:
        run, clock = call
        ns = clock(run, request["run"])
        if not GPU:
            time.sleep(0.005)  # its threads go on spinning for a while, which would slow others down
        return {"ns": ns}
    call.clear()
    if GPU:
        sync()
        torch.cuda.empty_cache()
    return {}


def main():
    say({"peer": "PyTorch " + torch.__version__})
    call = []
    while True:
        request = json.loads(requests.get())
        try:
            reply = answer(request, call)
        except Exception as e:
            call.clear()
            reply = {"error": ("%s: %s" % (type(e).__name__, e)).strip().split("\n")[0]}
        say(reply)


main()
