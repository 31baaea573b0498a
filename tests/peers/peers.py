"""Calls of PyTorch and FAISS that peers measures, one process per setting.

Each line that is read is a request as JSON, each line that is written its answer:

  {"call": "add", "args": {"n": 1000}}   prepare a call          -> {"note": "..."}
  {"run": 3, "warm": 1, "of": "add"}     make it once, and three times more -> {"ns": one of the three}
  {"drop": "add"}                        forget it and its data  -> {}

or {"error": ...}; {"missing": ...} names Debian packages. An answer comes when the
libraries' threads are asleep: they would go on spinning while others are measured.
A call is made once before any is timed, and allocates what the library allocates.
"""
import json, os, sys, time

THREADS = int(os.environ["OMP_NUM_THREADS"])
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # output of libraries must not mix with the replies


def torch():
    import torch
    torch.set_num_threads(THREADS)
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    return torch


def note(t):
    kind = [w.split(":")[1].strip() for w in t.__config__.show().split("\n") if "CPU capability" in w]
    return "PyTorch %s, %s" % (t.__version__, kind[0] if kind else "?")


def elementwise(f):
    def call(n):
        t = torch()
        x, y, z = t.rand(n), t.rand(n), t.empty(n)
        return note(t), f(t, x, y, z)
    return call


add = elementwise(lambda t, x, y, z: lambda: t.add(x, y, out=z))
copy = elementwise(lambda t, x, y, z: lambda: z.copy_(x))
sum = elementwise(lambda t, x, y, z: lambda: x.sum())
# In place, as saxpy.
saxpy = elementwise(lambda t, x, y, z: lambda: y.add_(x, alpha=0.001))


def cast(n, to):
    """A conversion into memory that is there."""
    t = torch()
    x, z = t.rand(n) * 100, t.empty(n, dtype=getattr(t, to))
    return note(t), lambda: z.copy_(x)


def rows_call(f):
    """A call that works on rows, into memory that is there where PyTorch can."""
    def call(rows, cols):
        t = torch()
        x, z = t.rand(rows, cols), t.empty(rows, cols)
        return note(t), f(t, x, z)
    return call


softmax = rows_call(lambda t, x, z: lambda: t._softmax(x, 1, False, out=z))
softmax_allocating = rows_call(lambda t, x, z: lambda: t.softmax(x, 1))


def layer_norm(rows, cols):
    t = torch()
    x, w, b = t.rand(rows, cols), t.rand(cols), t.rand(cols)
    return note(t), lambda: t.nn.functional.layer_norm(x, (cols,), w, b)


gelu = rows_call(lambda t, x, z: lambda: t._C._nn.gelu(x, out=z))
gelu_tanh = rows_call(lambda t, x, z: lambda: t._C._nn.gelu(x, approximate="tanh", out=z))
sum_all = rows_call(lambda t, x, z: lambda: x.sum())
sum_rows = rows_call(lambda t, x, z: lambda: x.sum(1))
sum_columns = rows_call(lambda t, x, z: lambda: x.sum(0))


def products(n, side):
    t = torch()
    x, y, z = t.rand(n, side, side), t.rand(n, side, side), t.empty(n, side, side)
    return note(t), lambda: t.bmm(x, y, out=z)


def linear_gelu(rows, cols, depth):
    t = torch()
    x, w, b, z = t.rand(rows, depth), t.rand(depth, cols), t.rand(cols), t.empty(rows, cols)

    def call():
        t.addmm(b, x, w, out=z)
        t._C._nn.gelu(z, out=z)
    return note(t), call


def linear_gelu_mkldnn(rows, cols, depth):
    """By oneDNN, with filters in its own order."""
    t = torch()
    from torch.utils import mkldnn
    f, x = mkldnn.to_mkldnn(t.nn.Linear(depth, cols).eval()), t.rand(rows, depth)
    return note(t), lambda: t.nn.functional.gelu(f(x.to_mkldnn()).to_dense())


def few(form):
    """A product of few rows with weights that are stored as the matrix of the product, or turned."""
    def call(rows, cols, depth, x, w, turned):
        t = torch()
        types = {"f32": t.float32, "bf16": t.bfloat16, "f16": t.float16}
        a = t.rand(rows, depth).to(types[x])
        b = t.rand(cols, depth).to(types[w]).t() if turned else t.rand(depth, cols).to(types[w])
        return note(t), form(a, b)
    return call


few_rows = few(lambda a, b: lambda: a @ b)
few_rows_widened = few(lambda a, b: lambda: a @ b.to(a.dtype))
few_rows_rounded = few(lambda a, b: lambda: (a.to(b.dtype) @ b).to(a.dtype))


def attention(heads, places, width, causal):
    t = torch()
    q, k, v = (t.rand(heads, places, width) for _ in range(3))
    mask = t.full((places, places), float("-inf")).triu(1)
    zero = t.zeros(1)

    def call():
        s = t.baddbmm(mask if causal else zero, q, k.transpose(1, 2), beta=1 if causal else 0, alpha=width ** -0.5)
        return t.bmm(t.softmax(s, -1), v)
    return note(t), call


def attention_kept(heads, places, width, causal):
    """The same, with memory for the products that is there, head by head, so that it is small."""
    t = torch()
    q, k, v, y = (t.rand(heads, places, width) for _ in range(4))
    mask = t.full((places, places), float("-inf")).triu(1)
    s = t.empty(places, places)

    def call():
        for i in range(heads):
            t.addmm(mask, q[i], k[i].t(), beta=1 if causal else 0, alpha=width ** -0.5, out=s)
            t._softmax(s, -1, False, out=s)
            t.mm(s, v[i], out=y[i])
    return note(t), call


def attention_library(heads, places, width, causal):
    t = torch()
    q, k, v = (t.rand(1, heads, places, width) for _ in range(3))
    f = t.nn.functional
    by = getattr(f, "scaled_dot_product_attention", None) or f._scaled_dot_product_attention  # its name before PyTorch 2
    return note(t), lambda: by(q, k, v, is_causal=causal)


def training(sizes, batch, foreach=True):
    """One step: cross entropy, backward, Adam."""
    t = torch()
    layers = []
    for i in range(len(sizes) - 1):
        layers += [t.nn.Linear(sizes[i], sizes[i + 1]), t.nn.ReLU()]
    net = t.nn.Sequential(*layers[:-1])
    optimizer = t.optim.Adam(net.parameters(), 0.001, foreach=foreach)
    x, labels = t.rand(batch, sizes[0]), t.arange(batch) % sizes[-1]
    loss = t.nn.CrossEntropyLoss()

    def call():
        with t.enable_grad():
            optimizer.zero_grad(set_to_none=True)
            loss(net(x), labels).backward()
        optimizer.step()
    return note(t), call


def training_each(sizes, batch):
    """The optimizer goes through the parameters one by one."""
    return training(sizes, batch, False)


def network(build, batch, steps, foreach=True):
    """Steps of a network: cross entropy, backward, Adam. foreach says how the optimizer goes through the parameters."""
    t = torch()
    net, x, labels = build(t, batch)
    optimizer = t.optim.Adam(net.parameters(), 0.001, foreach=foreach)
    loss = t.nn.CrossEntropyLoss()

    def call():
        for _ in range(steps):
            with t.enable_grad():
                optimizer.zero_grad(set_to_none=True)
                y = net(x)
                loss(y.reshape(-1, y.shape[-1]), labels).backward()
            optimizer.step()
    return note(t), call


def mlp(t, batch):
    n = t.nn
    net = n.Sequential(n.Linear(784, 512), n.ReLU(), n.Linear(512, 256), n.ReLU(), n.Linear(256, 10))
    return net, t.rand(batch, 784), t.arange(batch) % 10


def cnn(t, batch):
    n = t.nn
    net = n.Sequential(n.Conv2d(1, 32, 3), n.ReLU(), n.Conv2d(32, 64, 3), n.ReLU(), n.MaxPool2d(2), n.Flatten(), n.Linear(9216, 128), n.ReLU(), n.Linear(128, 10))
    return net, t.rand(batch, 1, 28, 28), t.arange(batch) % 10


def lstm(t, batch):
    class Last(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = t.nn.LSTM(64, 128, batch_first=True), t.nn.Linear(128, 10)

        def forward(self, x):
            return self.out(self.lstm(x)[0][:, -1])
    return Last(), t.rand(batch, 64, 64), t.arange(batch) % 10


def transformer(t, batch):
    n = t.nn
    net = n.Sequential(n.TransformerEncoderLayer(256, 4, 1024, dropout=0, activation="gelu", batch_first=True, norm_first=True), n.Linear(256, 10))
    return net, t.rand(batch, 256, 256), t.arange(batch * 256) % 10


for build in mlp, cnn, lstm, transformer:
    name = "network_" + build.__name__
    globals()[name] = lambda build=build, **kw: network(build, **kw)
    globals()[name + "_each"] = lambda build=build, **kw: network(build, foreach=False, **kw)


def convolution(form, n, c, h, w, out, kernel, stride=1, pad=0, dilation=1, groups=1):
    t = torch()
    x, f = t.rand(n, c, h, w), t.nn.Conv2d(c, out, kernel, stride, pad, dilation, groups, bias=False)
    return note(t) + ", oneDNN" * t.backends.mkldnn.is_available(), x, f.to(memory_format=form(t))


def conv2d(**kw):
    text, x, f = convolution(lambda t: t.contiguous_format, **kw)
    return text, lambda: f(x)


def conv2d_last(**kw):
    """The same with channels last, which oneDNN may like better."""
    text, x, f = convolution(lambda t: t.channels_last, **kw)
    x = x.to(memory_format=torch().channels_last)
    return text, lambda: f(x)


def conv2d_converted(**kw):
    """Channels last inside: what it costs where x and y have the channels first."""
    text, x, f = convolution(lambda t: t.channels_last, **kw)
    last = torch().channels_last
    return text, lambda: f(x.contiguous(memory_format=last)).contiguous()


def gradients(form, stride=1, pad=0, dilation=1, groups=1, **kw):
    """Those of x and the filters."""
    text, x, f = convolution(form, stride=stride, pad=pad, dilation=dilation, groups=groups, **kw)
    t = torch()
    x = x.contiguous(memory_format=form(t))
    g, w = t.rand_like(f(x)), f.weight
    return text, lambda: t.ops.aten.convolution_backward(g, x, w, None, [stride] * 2, [pad] * 2, [dilation] * 2, False, [0, 0], groups, [True, True, False])


def conv2d_gradients(**kw):
    return gradients(lambda t: t.contiguous_format, **kw)


def conv2d_gradients_last(**kw):
    return gradients(lambda t: t.channels_last, **kw)


def knn(vectors, dim, queries, k):
    """IndexFlatL2: distances to all vectors, and the k nearest."""
    import faiss, numpy
    faiss.omp_set_num_threads(THREADS)
    r = numpy.random.default_rng(1)
    index = faiss.IndexFlatL2(dim)
    for _ in range(10):
        index.add(r.random((vectors // 10, dim), dtype="f"))
    q = r.random((queries, dim), dtype="f")
    return "FAISS %s, %s" % (faiss.__version__, faiss.get_compile_options().strip()), lambda: index.search(q, k)


def hnsw_index(path, n, threads):
    """An index of the first n rows of a file, with 16 links and 200 vectors in view, and the other rows."""
    import hnswlib, numpy
    rows = numpy.load(path)

    def build():
        index = hnswlib.Index(space="l2", dim=rows.shape[1])
        index.init_index(max_elements=n, M=16, ef_construction=200)
        index.set_num_threads(threads)
        index.add_items(rows[:n])
        return index
    return build, rows


def hnsw_build(path, n, recall, k, threads):
    return "hnswlib", hnsw_index(path, n, threads)[0]


def hnsw_memory(path, n, recall, k, threads):
    build, rows = hnsw_index(path, n, threads)
    first = resident()
    index = build()
    return "hnswlib %d" % ((resident() - first) // n), lambda: index


def resident():
    """The bytes of memory that this process uses."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def hnsw_search(path, n, recall, k, threads):
    """Searches with the fewest vectors in view that find this share of the k nearest."""
    import faiss
    build, rows = hnsw_index(path, n, THREADS)
    flat, index, queries = faiss.IndexFlatL2(rows.shape[1]), build(), rows[n:]
    index.set_num_threads(threads)
    flat.add(rows[:n])
    truth = flat.search(queries, k)[1]
    for ef in range(k, 500, 5):
        index.set_ef(ef)
        found = index.knn_query(queries, k)[0]
        share = float((found[:, :, None] == truth[:, None, :]).any(2).mean())
        if share >= recall:
            return "hnswlib, ef %d, recall %.4f" % (ef, share), lambda: index.knn_query(queries, k)
    raise ValueError("no ef reaches the recall")


def ivf_index(path, n, lists):
    """An index of the first n rows of a file in lists, and the other rows."""
    import faiss, numpy
    faiss.omp_set_num_threads(THREADS)
    rows = numpy.load(path, mmap_mode="r")
    base = numpy.ascontiguousarray(rows[:n])

    def build():
        quantizer = faiss.IndexFlatL2(rows.shape[1])
        index = faiss.IndexIVFFlat(quantizer, rows.shape[1], lists)
        index.quantizer = quantizer  # which Python would free
        index.train(base)
        index.add(base)
        return index
    return build, base, numpy.ascontiguousarray(rows[n:])


def ivf_build(path, n, lists, recall, k):
    import faiss
    return "FAISS " + faiss.__version__, ivf_index(path, n, lists)[0]


def ivf_search(path, n, lists, recall, k, alone=False):
    """Searches of the fewest lists that find this share of the k nearest, in one call or with a call for each query."""
    import faiss
    build, base, queries = ivf_index(path, n, lists)
    index, flat = build(), faiss.IndexFlatL2(base.shape[1])
    flat.add(base)
    truth = flat.search(queries, k)[1]
    del flat, base
    for probes in range(2, lists):
        index.nprobe = probes
        found = index.search(queries, k)[1]
        share = float((found[:, :, None] == truth[:, None, :]).any(2).mean())
        if share >= recall:
            parts = [queries[i:i + 1] for i in range(len(queries))] if alone else [queries]
            return "FAISS %s, probes %d, recall %.4f" % (faiss.__version__, probes, share), lambda: [index.search(part, k) for part in parts]
    raise ValueError("no number of probes reaches the recall")


def ivf_search_one(**args):
    return ivf_search(alone=True, **args)


def pq_index(path, n, lists, fast):
    """An index of codes of 16 bytes for the first n rows of a file, in lists, and all rows; fast are codes of 4 bits for tables in registers."""
    import faiss, numpy
    faiss.omp_set_num_threads(THREADS)
    rows = numpy.load(path, mmap_mode="r")
    quantizer = faiss.IndexFlatL2(rows.shape[1])
    index = faiss.IndexIVFPQFastScan(quantizer, rows.shape[1], lists, 32, 4) if fast else faiss.IndexIVFPQ(quantizer, rows.shape[1], lists, 16, 8)
    index.quantizer = quantizer  # which Python would free
    index.by_residual = True  # as the other one is
    return index, numpy.ascontiguousarray(rows[:n]), numpy.ascontiguousarray(rows[n:])


def pq_name(fast):
    import faiss
    return "FAISS %s %s" % (faiss.__version__, "IVFPQFastScan 32×4" if fast else "IVFPQ 16×8")


def pq_build(fast):
    def call(path, n, lists, **_):
        def build():
            index, base, _ = pq_index(path, n, lists, fast)
            index.train(base)
            index.add(base)
        return pq_name(fast), build
    return call


def pq_search(fast):
    return lambda **args: pq_searches(fast, **args)


def pq_searches(fast, path, n, lists, recall, probes, refine, truth, k):
    """Searches of so many lists by codes alone, or of those lists and vectors with which searches that find this share of the k nearest are fastest."""
    import faiss, numpy
    index, base, queries = pq_index(path, n, lists, fast)
    truth = numpy.array(truth)

    def share(found):
        return float((found[:, :, None] == truth[:, None, :]).any(2).mean())
    if probes:
        index.train(base)
        index.add(base)
        index.nprobe = probes
        return "%s, recall %.4f" % (pq_name(fast), share(index.search(queries, k)[1])), lambda: index.search(queries, k)
    whole, best = faiss.IndexRefineFlat(index), None
    whole.train(base)
    whole.add(base)
    for factor in refine:
        whole.k_factor = factor
        for index.nprobe in range(6, 33):
            found = share(whole.search(queries, k)[1])
            if found >= recall:
                start = time.perf_counter()
                whole.search(queries, k)
                took = time.perf_counter() - start
                if best is None or took < best[0]:
                    best = took, factor, index.nprobe, found
                break
    if best is None:
        raise ValueError("nothing reaches the recall")
    _, whole.k_factor, index.nprobe, found = best
    return "%s, refine %d, probes %d, recall %.4f" % (pq_name(fast), best[1], best[2], found), lambda: whole.search(queries, k)


pq_build_8, pq_build_4, pq_search_8, pq_search_4 = pq_build(False), pq_build(True), pq_search(False), pq_search(True)

PACKAGES = {"hnswlib": "python3-hnswlib", "torch": "python3-torch", "faiss": "python3-faiss", "numpy": "python3-numpy"}


def quiet():
    """Waits until no other thread of this process runs or waits for a processor.

    The time that they used would not do: Linux adds that of a running thread at the clock's ticks.
    """
    end = time.perf_counter() + 2
    while time.perf_counter() < end and running() > 1:
        time.sleep(0.001)


def running():
    n = 0
    for thread in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/stat" % thread) as f:
                n += f.read().rpartition(")")[2].startswith(" R")
        except OSError:
            pass  # it has ended
    return n


def main():
    calls = {}
    for line in sys.stdin:
        try:
            m, answer = json.loads(line), {}
            if "call" in m:
                calls.pop(m["call"], None)
                answer["note"], call = globals()[m["call"]](**m.get("args", {}))
                call()
                calls[m["call"]] = call
                call = None
            elif "run" in m:
                n, call = range(m["run"]), calls[m["of"]]
                for _ in range(m["warm"]):
                    call()
                start = time.perf_counter_ns()
                for _ in n:
                    call()
                answer["ns"] = (time.perf_counter_ns() - start) / len(n)
                call = None
            else:
                del calls[m["drop"]]
        except ImportError as e:
            answer = {"missing": PACKAGES.get(e.name, e.name)}
        except Exception as e:
            answer = {"error": "%s: %s" % (type(e).__name__, e)}
        quiet()
        print(json.dumps(answer), file=answers, flush=True)


main()
