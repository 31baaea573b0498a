package memory

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/mnist"
	catalog "github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
	"github.com/concord-compute/concord/source"
)

// full selects the long forms of the tests, for make test-memory.
var full = os.Getenv("MEMPOOL_FULL") != ""

// TestTrainingTrace records a network that learns digits and allocates and frees memory in each
// step. Every mode of pool serves nearly all requests of the recording without the driver, and a
// pool that splits reserves little more than is live.
func TestTrainingTrace(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	if !hasCompiler(t, d.Driver().(driver.Compiler)) {
		t.Skip("no compiler for the kernels that are not in the cpu backend")
	}
	sizes, batch, epochs := []int{784, 512, 256, 10}, 500, 3
	if full {
		sizes, batch, epochs = []int{784, 2048, 1024, 10}, 1100, 6
	}
	n := newNet(t, d, sizes...)
	require.NoError(t, d.Memory().Record(true))
	before := n.accuracy(t, 1000)
	for range epochs {
		n.epoch(t, batch)
	}
	after := n.accuracy(t, 1000)
	trace := d.Memory().Trace()
	st := d.Stats()
	n.close(t)
	t.Logf("right before %.3f, after %.3f; %d events, %d allocations", before, after, len(trace.Events), st.Allocations)
	assert.Greater(t, after, 0.85, "it is a real training")
	assert.Zero(t, trace.Dropped)
	require.NoError(t, d.Memory().Record(false))

	a := mempool.AnalyzeFragmentation(trace)
	assert.Equal(t, st.Memory.PeakLive, a.PeakLive)
	assert.Equal(t, st.Memory.PeakReserved, a.PeakReserved)
	for _, mode := range []mempool.Mode{mempool.Split, mempool.Whole, mempool.Exact} {
		out, err := trace.Replay(mempool.Options{Mode: mode}, nil)
		require.NoError(t, err)
		ratio := float64(out.Stats.PeakReserved) / float64(out.Stats.PeakLive)
		t.Logf("%v: peak live %s, reserved %.3f of it, without the driver %.4f, internal %.4f", mode,
			driver.FormatBytes(out.Stats.PeakLive),
			ratio, out.Stats.Efficiency(), out.Stats.Internal())
		if mode == mempool.Split {
			assert.LessOrEqual(t, ratio, 1.35)
		}
		assert.GreaterOrEqual(t, out.Stats.Efficiency(), 0.95, mode)
	}
	if file := os.Getenv("MEMPOOL_TRACE"); file != "" {
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, trace.Write(f))
		require.NoError(t, f.Close())
	}
}

// net is a network of layers with tanh between them and softmax at the end, trained by
// gradient descent with momentum.
type net struct {
	d                *runtime.Device
	s                *runtime.Stream
	sizes            []int
	weights, moments []*runtime.Buffer
	pixels           []float32
	labels           []uint8
	kernels          map[string]*runtime.Kernel
}

func newNet(t *testing.T, d *runtime.Device, sizes ...int) *net {
	images, err := mnist.Images()
	require.NoError(t, err)
	n := &net{d: d, s: d.Stream(), sizes: sizes, kernels: map[string]*runtime.Kernel{}}
	n.labels, err = mnist.Labels()
	require.NoError(t, err)
	for _, p := range images.Pixels {
		n.pixels = append(n.pixels, float32(p)/255)
	}
	n.load(t, "gemm", "gemm", "gemm")
	n.load(t, "gemm", "gemm", "gemm A", source.Define{Name: "TRANS_A", Value: "1"})
	n.load(t, "gemm", "gemm", "gemm B", source.Define{Name: "TRANS_B", Value: "1"})
	for _, k := range [][2]string{{"activation", "tanh_act"}, {"softmax", "softmax"}, {"arith", "mul"}, {"arith", "sub"},
		{"arith", "scalar_sub"}, {"arith", "mul_scalar"}, {"saxpy", "saxpy"}} {
		n.load(t, k[0], k[1], k[1])
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := 1; i < len(sizes); i++ {
		w := make([]float32, sizes[i-1]*sizes[i])
		for j := range w {
			w[j] = float32(r.NormFloat64() / math.Sqrt(float64(sizes[i-1])))
		}
		b, err := runtime.Upload(t.Context(), d, w)
		require.NoError(t, err)
		m, err := runtime.Upload(t.Context(), d, make([]float32, len(w)))
		require.NoError(t, err)
		n.weights, n.moments = append(n.weights, b), append(n.moments, m)
	}
	return n
}

func (n *net) load(t *testing.T, family, name, as string, defines ...source.Define) {
	unit, err := catalog.Unit(family, n.d.Features(), defines...)
	require.NoError(t, err)
	p, err := n.d.Program(t.Context(), unit)
	require.NoError(t, err)
	n.kernels[as], err = p.Kernel(name)
	require.NoError(t, err)
}

func (n *net) alloc(t *testing.T, elements int) *runtime.Buffer {
	b, err := n.s.Alloc(runtime.F32, elements)
	require.NoError(t, err)
	return b
}

func (n *net) launch(t *testing.T, name string, sizes []int, args ...any) {
	k := n.kernels[name]
	items, group, err := catalog.Geometry(k.Unit(), k.Name(), sizes...)
	require.NoError(t, err)
	require.NoError(t, n.s.Launch(k, runtime.Grid{Items: items, Group: group}, args...), name)
}

// each launches a kernel over the elements of its last buffer.
func (n *net) each(t *testing.T, name string, args ...any) {
	elements := 0
	for _, a := range args {
		if b, is := a.(*runtime.Buffer); is {
			elements = b.Len()
		}
	}
	n.launch(t, name, []int{elements}, append(args, uint64(elements))...)
}

// product returns a new buffer with op(a)·op(b), rows×cols.
func (n *net) product(t *testing.T, name string, rows, cols, inner int, a *runtime.Buffer, lda int, b *runtime.Buffer,
	ldb int) *runtime.Buffer {
	c := n.alloc(t, rows*cols)
	n.launch(t, name, []int{rows, cols}, uint32(rows), uint32(cols), uint32(inner), float32(1), a, uint32(lda), b,
		uint32(ldb),
		float32(0), c, uint32(cols))
	return c
}

// forward returns the input, the layers' outputs and at last the probabilities.
func (n *net) forward(t *testing.T, first, batch int) []*runtime.Buffer {
	x := n.alloc(t, batch*n.sizes[0])
	require.NoError(t, runtime.Write(t.Context(), x, n.pixels[first*n.sizes[0]:(first+batch)*n.sizes[0]]))
	layers := []*runtime.Buffer{x}
	for i, w := range n.weights {
		in, out := n.sizes[i], n.sizes[i+1]
		z := n.product(t, "gemm", batch, out, in, layers[i], in, w, out)
		y := n.alloc(t, batch*out)
		if i < len(n.weights)-1 {
			n.each(t, "tanh_act", z, y)
		} else {
			n.launch(t, "softmax", []int{batch}, z, y, uint32(batch), uint32(out))
		}
		closeAll(t, z)
		layers = append(layers, y)
	}
	return layers
}

// step trains on one batch.
func (n *net) step(t *testing.T, first, batch int) {
	layers := n.forward(t, first, batch)
	last := len(n.weights)
	outputs := n.sizes[last]
	want := make([]float32, batch*outputs)
	for i, label := range n.labels[first : first+batch] {
		want[i*outputs+int(label)] = 1
	}
	target := n.alloc(t, len(want))
	require.NoError(t, runtime.Write(t.Context(), target, want))
	delta := n.alloc(t, len(want))
	n.each(t, "sub", layers[last], target, delta)
	n.each(t, "mul_scalar", delta, float32(1)/float32(batch), delta)
	closeAll(t, target, layers[last])
	for i := last - 1; i >= 0; i-- {
		in, out := n.sizes[i], n.sizes[i+1]
		grad := n.product(t, "gemm A", in, out, batch, layers[i], in, delta, out)
		if i > 0 { // through the layer below, before its weights change
			back := n.product(t, "gemm B", batch, in, out, delta, out, n.weights[i], out)
			slope := n.alloc(t, batch*in)
			n.each(t, "mul", layers[i], layers[i], slope)
			n.each(t, "scalar_sub", float32(1), slope, slope)
			n.each(t, "mul", back, slope, back)
			closeAll(t, delta, slope)
			delta = back
		}
		n.each(t, "mul_scalar", n.moments[i], float32(0.9), n.moments[i])
		n.each(t, "saxpy", float32(1), grad, n.moments[i])
		n.each(t, "saxpy", float32(-0.1), n.moments[i], n.weights[i])
		closeAll(t, grad, layers[i])
	}
	closeAll(t, delta)
}

// epoch trains on every digit once; the last batch may be smaller.
func (n *net) epoch(t *testing.T, batch int) {
	for first := 0; first < len(n.labels); first += batch {
		n.step(t, first, min(batch, len(n.labels)-first))
		if first/batch%4 == 3 {
			n.accuracy(t, 256)
		}
	}
}

// accuracy returns the part of the first digits that the network classifies correctly.
func (n *net) accuracy(t *testing.T, count int) float64 {
	layers := n.forward(t, 0, count)
	p := make([]float32, count*n.sizes[len(n.sizes)-1])
	require.NoError(t, runtime.Read(t.Context(), layers[len(layers)-1], p))
	closeAll(t, layers...)
	right := 0
	for i := range count {
		row := p[i*10 : i*10+10]
		best := 0
		for j := range row {
			if row[j] > row[best] {
				best = j
			}
		}
		if best == int(n.labels[i]) {
			right++
		}
	}
	return float64(right) / float64(count)
}

func (n *net) close(t *testing.T) {
	closeAll(t, n.weights...)
	closeAll(t, n.moments...)
	require.NoError(t, n.d.Sync(context.Background()))
	st := n.d.Stats()
	assert.Zero(t, st.Live+st.Deferred, fmt.Sprintf("%+v", st))
}

func closeAll(t *testing.T, list ...*runtime.Buffer) {
	for _, b := range list {
		require.NoError(t, b.Close())
	}
}
