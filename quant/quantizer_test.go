package quant

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

func quantizer(t *testing.T, cfg runtime.Config, device string, o QuantizerOptions) (*Quantizer, *runtime.Device) {
	session, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	dev, err := session.Open(t.Context(), device)
	require.NoError(t, err)
	t.Cleanup(func() { _ = dev.Close() })
	q, err := NewQuantizer(dev, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q, dev
}

// Pieces of any size, and all providers, make the bytes and numbers of one piece.
func TestQuantizerPieces(t *testing.T) {
	const rows, cols = 7, 300
	x := ternaryRows(rand.New(rand.NewPCG(7, 8)), 1, rows*cols) // one magnitude for all
	for _, f := range []Format{I2SM1, I2SM2, TQ10, TQ20, Q40, Q80, Q4K, Q6K, I2SB, RTL1Q, I8Rows} {
		l, err := Layout{Format: f, Rows: rows, Cols: cols}.Padded()
		require.NoError(t, err)
		want, err := New(l)
		require.NoError(t, err)
		want.K = cols
		require.NoError(t, Encode(want, x))
		back := make([]float32, len(x))
		require.NoError(t, Decode(back, want))
		for _, v := range providers() {
			for _, budget := range []int64{1200, 2048, 5000, 0} {
				steps := 0
				q, _ := quantizer(t, runtime.Config{}, "cpu:0",
					QuantizerOptions{Budget: budget, Codecs: v.id(), Progress: func(done, all int) {
						steps++
						assert.Equal(t, l.Rows*l.Cols, all)
						assert.LessOrEqual(t, done, all)
					}})
				m, err := New(l)
				require.NoError(t, err)
				m.K, m.Data = cols, append(m.Data, 1, 2, 3)
				require.NoError(t, q.Encode(t.Context(), m, x), "%v %d", f, budget)
				if budget == 1200 && l.Cols != cols {
					assert.Greater(t, steps, rows/2, f)
				}
				assert.Equal(t, append(slices.Clone(want.Data), 1, 2, 3), m.Data, "%v %s %d", f, v.name, budget)
				assert.Equal(t, want.Scales, m.Scales)
				y := make([]float32, len(x))
				require.NoError(t, q.Decode(t.Context(), y, m))
				assert.Equal(t, back, y)
				assert.EqualValues(t, 2, q.Stats().QuantizationOperations)
			}
		}
	}
}

// A fault in a later piece is told at its place among the caller's numbers, and leaves zeros; one that is found
// before anything is written leaves all as it was.
func TestQuantizerFault(t *testing.T) {
	q, _ := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{Budget: 1200})
	for _, f := range []Format{TQ20, I2SM1, Q6K} {
		l, err := Layout{Format: f, Rows: 9, Cols: 300}.Padded()
		require.NoError(t, err)
		m, err := New(l)
		require.NoError(t, err)
		m.K = 300
		x := make([]float32, 9*300)
		x[8*300+7] = float32(math.Inf(1))
		for i := range m.Data {
			m.Data[i] = 0x55
		}
		err = q.Encode(t.Context(), m, x)
		assert.ErrorIs(t, err, driver.ErrNumerical)
		assert.ErrorContains(t, err, "number 2407 ")
		if f == I2SM1 { // the scale of all is found first
			assert.Equal(t, bytes.Repeat([]byte{0x55}, len(m.Data)), m.Data)
			continue
		}
		assert.Equal(t, make([]byte, len(m.Data)), m.Data)
	}
	s := q.Stats()
	assert.Zero(t, s.TotalOperations)
	assert.Contains(t, s.LastCPUError, "number 2407 ")
	assert.Empty(t, s.LastGPUError)
	assert.Error(t, q.Receipt().Validate(), "nothing has run to its end")
}

// A quantizer that is closed does nothing, and says so.
func TestQuantizerClosed(t *testing.T) {
	q, _ := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{})
	l := Layout{Format: TQ20, Rows: 1, Cols: 256}
	x := ternaryRows(rand.New(rand.NewPCG(7, 8)), 1, 256)
	m, err := Pack(l, x)
	require.NoError(t, err)
	w, err := q.Prepare(t.Context(), m)
	require.NoError(t, err)
	defer w.Close()
	early, err := q.Prepare(t.Context(), m)
	require.NoError(t, err)
	require.NoError(t, early.Close())
	require.NoError(t, early.Close())
	y := []float32{5}
	err = early.Mul(t.Context(), y, x, 1)
	require.ErrorIs(t, err, driver.ErrClosed)
	require.ErrorContains(t, err, "weights of 1 × 256")
	q.ForceCPU()
	require.ErrorIs(t, early.Mul(t.Context(), y, x, 1), driver.ErrClosed)
	require.Equal(t, []float32{5}, y)
	require.NoError(t, q.Close())
	require.NoError(t, q.Close())
	assert.ErrorIs(t, q.Encode(t.Context(), m, x), driver.ErrClosed)
	assert.ErrorIs(t, q.Decode(t.Context(), x, m), driver.ErrClosed)
	assert.ErrorIs(t, w.Mul(t.Context(), make([]float32, 1), x, 1), driver.ErrClosed)
	_, err = q.Prepare(t.Context(), m)
	assert.ErrorIs(t, err, driver.ErrClosed)
}

// seen returns the names of the functions and kernels in a recording of which nothing failed.
func seen(r *profile.Recording) (names []string) {
	events, _ := r.Events()
	for _, e := range events {
		if (e.Kind == profile.Launch || e.Kind == profile.Region) && e.Err == nil && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return names
}

// A receipt has what another observer saw, and a run of Go no vector function.
func TestQuantizerReceipt(t *testing.T) {
	for _, v := range providers() {
		q, dev := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{Codecs: v.id()})
		var r profile.Recording
		stop := dev.Session().Observe(&r)
		defer stop()
		x := ternaryRows(rand.New(rand.NewPCG(1, 9)), 1, 32*256)
		for _, l := range []Layout{{Format: TQ20, Rows: 32, Cols: 256},
			{Format: MTL1, Rows: 32, Cols: 256, Tile: Tile{BM: 32, BY: 64, Sub: 32}}} {
			m, err := New(l)
			require.NoError(t, err)
			require.NoError(t, q.Encode(t.Context(), m, x))
			require.NoError(t, q.Decode(t.Context(), make([]float32, len(x)), m))
			w, err := q.Prepare(t.Context(), m)
			require.NoError(t, err)
			require.NoError(t, w.Mul(t.Context(), make([]float32, 3*32), x, 3))
			require.NoError(t, w.Close())
		}
		receipt := q.Receipt()
		require.NoError(t, receipt.Validate())
		got := slices.Sorted(slices.Values(receipt.Kernels))
		assert.Equal(t, seen(&r), got)
		want := []string{"decode MTL1 go", "decode TQ2_0 " + v.name, "encode MTL1 go", "encode TQ2_0 " + v.name,
			"largest MTL1 " + v.name, "w2a8", "w2a8/quantize_rows"}
		assert.Equal(t, want, got)
		if v == plain {
			for _, name := range got {
				assert.False(t, strings.Contains(name, "avx") || strings.Contains(name, "neon"), name)
			}
		}
		assert.Equal(t, v.id(), q.CodecProvider(TQ20))
		assert.Equal(t, Provider("fallback"), q.CodecProvider(MTL1))
		s := q.Stats()
		assert.Equal(t, []int64{6, 4, 2, 0, 6, 0}, []int64{s.TotalOperations, s.QuantizationOperations, s.MatmulOperations,
			s.GPUOperations, s.CPUOperations, s.FallbackCount})
		assert.Positive(t, s.MatmulTimeMs)
		assert.InDelta(t, s.TotalTimeMs, s.MatmulTimeMs+s.QuantizationTimeMs, 1e-9)
		assert.Contains(t, s.Summary(), "Device: CPU | Total: 6 ops (4 quantize, 2 matmul)")
		assert.False(t, q.IsGPUActive())

		// Kernels of others on the same device are not the quantizer's.
		q.ResetStats()
		p := prepared(t, dev, []float32{1, -1}, 1, 2)
		a, b := upload(t, dev, []float32{1, 2}), upload(t, dev, []float32{0})
		require.NoError(t, p.Mul(b, a, 1))
		require.NoError(t, dev.Sync(t.Context()))
		assert.Empty(t, q.Receipt().Kernels)
		assert.Zero(t, q.Stats().TotalOperations)
		require.NoError(t, p.Close())
	}
}

// A product that fails on its device goes to the host where the policy says so, each time counted and told.
// Where it does not, the error comes back and nothing has changed.
func TestQuantizerFallback(t *testing.T) {
	why := errors.New("unplugged")
	for _, policy := range []driver.Fallback{driver.Prefer, runtime.Require} {
		q, dev := quantizer(t, runtime.Config{Fallback: policy}, "cpu:reference", QuantizerOptions{})
		var r profile.Recording
		defer dev.Session().Observe(&r)()
		w := ternaryRows(rand.New(rand.NewPCG(3, 4)), 5, 40)
		m, err := Pack(Layout{Format: I2SB, Rows: 5, Cols: 40, Block: 32}, w)
		require.NoError(t, err)
		weights, err := q.Prepare(t.Context(), m)
		require.NoError(t, err)
		defer weights.Close()
		x := make([]float32, 2*40)
		for i := range x {
			x[i] = float32(i%9 - 4)
		}
		want, y := make([]float32, 10), make([]float32, 12)
		require.NoError(t, weights.Mul(t.Context(), want, x, 2))
		y[0], y[10], y[11] = 7, 8, 9
		before := slices.Clone(y)
		require.NoError(t, dev.Abandon(why))
		err = weights.Mul(t.Context(), y, x, 2)
		later, laterErr := q.Prepare(t.Context(), m)
		s := q.Stats()
		assert.Contains(t, s.LastCPUError, "unplugged")
		assert.Empty(t, s.LastGPUError, "there is none")
		events, _ := r.Events()
		events = slices.DeleteFunc(events, func(e profile.Event) bool { return e.Kind != profile.Fallback })
		if policy == runtime.Require {
			assert.Equal(t, "CPU", s.DeviceType)
			assert.ErrorIs(t, err, driver.ErrDeviceLost)
			assert.ErrorIs(t, err, why)
			assert.ErrorIs(t, laterErr, driver.ErrDeviceLost)
			assert.Equal(t, before, y)
			assert.EqualValues(t, 0, s.FallbackCount)
			assert.EqualValues(t, 1, s.TotalOperations)
			assert.Zero(t, dev.Session().Fallbacks())
			assert.Empty(t, events)
			continue
		}
		assert.Equal(t, "CPU+fallback", s.DeviceType)
		require.NoError(t, err)
		assert.InDeltaSlice(t, want, y[:10], 1e-5)
		assert.Equal(t, before[10:], y[10:])
		assert.EqualValues(t, 1, s.FallbackCount)
		assert.EqualValues(t, 2, s.CPUOperations)
		require.Len(t, events, 1)
		assert.Equal(t, "cpu:0", events[0].Device)
		assert.Contains(t, events[0].Detail, "unplugged")

		// Weights that did not get onto the device are multiplied on the host, which is a fallback, too.
		require.NoError(t, laterErr)
		defer later.Close()
		require.NoError(t, later.Mul(t.Context(), y, x, 2))
		assert.EqualValues(t, 2, q.Stats().FallbackCount)
		assert.EqualValues(t, 2, dev.Session().Fallbacks())

		// By choice it is none.
		q.ForceCPU()
		require.NoError(t, weights.Mul(t.Context(), y, x, 2))
		require.NoError(t, later.Mul(t.Context(), y, x, 2))
		assert.EqualValues(t, 5, q.Stats().MatmulOperations)
		assert.EqualValues(t, 2, q.Stats().FallbackCount)
		assert.EqualValues(t, 2, dev.Session().Fallbacks())

		// Weights that nothing multiplies are refused once, whatever the policy.
		bad, err := Pack(Layout{Format: I8Rows, Rows: 1, Cols: 32}, []float32{31: 1, 30: 0.3, 29: 0.5})
		require.NoError(t, err)
		_, err = q.Prepare(t.Context(), bad)
		assert.ErrorIs(t, err, driver.ErrUnsupported)
	}
}

// Pieces keep the memory of a call below the budget: of the device as its accounts have it, of the host as the
// language has it.
func TestQuantizerBudget(t *testing.T) {
	const budget = 64 << 10
	q, dev := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{Budget: budget})
	const n, k, rows = 64, 300, 200
	w := ternaryRows(rand.New(rand.NewPCG(3, 5)), 1, n*k)
	m, err := Pack(Layout{Format: TQ20, Rows: n, Cols: k}, w)
	require.NoError(t, err)
	weights, err := q.Prepare(t.Context(), m)
	require.NoError(t, err)
	defer weights.Close()
	x := make([]float32, rows*k)
	for i := range x {
		x[i] = float32(i%31 - 15)
	}
	live := dev.Stats().Live
	y, whole := make([]float32, rows*n), make([]float32, rows*n)
	require.NoError(t, weights.Mul(t.Context(), y, x, rows))
	stats := dev.Stats()
	assert.LessOrEqual(t, stats.Peak-live, int64(budget))
	assert.Greater(t, stats.Peak-live, int64(budget/2), "it is used")
	assert.Equal(t, live, stats.Live, "and given back")
	_, err = NewQuantizer(nil, QuantizerOptions{})
	require.ErrorIs(t, err, driver.ErrInvalidArgument)
	wide, err := NewQuantizer(dev, QuantizerOptions{})
	require.NoError(t, err)
	defer wide.Close()
	all, err := wide.Prepare(t.Context(), m)
	require.NoError(t, err)
	defer all.Close()
	require.NoError(t, all.Mul(t.Context(), whole, x, rows))
	assert.Equal(t, whole, y)

	// The host: padding of 4 MiB.
	big := make([]float32, 1000*900)
	l, err := Layout{Format: TQ20, Rows: 1000, Cols: 900}.Padded()
	require.NoError(t, err)
	packed, err := New(l)
	require.NoError(t, err)
	packed.K = 900
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	require.NoError(t, q.Encode(t.Context(), packed, big))
	require.NoError(t, q.Decode(t.Context(), big, packed))
	goruntime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*budget+64<<10))

	// What can not be done in less is refused before anything changes.
	tiny, err := NewQuantizer(dev, QuantizerOptions{Budget: 100})
	require.NoError(t, err)
	defer tiny.Close()
	packed.Data[0] = 0xaa
	assert.ErrorIs(t, tiny.Encode(t.Context(), packed, big), driver.ErrBudget)
	assert.Equal(t, byte(0xaa), packed.Data[0])
	_, err = tiny.Prepare(t.Context(), m)
	assert.ErrorIs(t, err, driver.ErrBudget)
	assert.ErrorContains(t, err, "TQ2_0 of 64 × 300")
	assert.Zero(t, tiny.Stats().FallbackCount, "a budget is no reason of the device")
	little, err := NewQuantizer(dev, QuantizerOptions{Budget: 512*4 + 128 + 4}) // of a row
	require.NoError(t, err)
	defer little.Close()
	tall, err := Pack(Layout{Format: TQ20, Rows: 4 * n, Cols: k}, make([]float32, 4*n*k))
	require.NoError(t, err)
	small, err := little.Prepare(t.Context(), tall)
	require.NoError(t, err)
	defer small.Close()
	y[0] = 5
	assert.ErrorIs(t, small.Mul(t.Context(), y, x, 1), driver.ErrBudget)
	assert.Equal(t, float32(5), y[0])
}

// Weights that are prepared in pieces of any size are the bytes that one piece makes, in every format.
func TestPreparePieces(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, l := range []Layout{{Format: I2SM1, Cols: 96}, {Format: I2SM2, Cols: 80}, {Format: I2SB, Cols: 300},
		{Format: I2SB, Block: 32, Cols: 300}, {Format: TQ10, Cols: 300},
		{Format: TQ20, Cols: 256}, {Format: RA, Cols: 33}, {Format: RB, Cols: 40},
		{Format: MTL1, Cols: 128, Tile: Tile{32, 64, 32}}, {Format: MTL2, Cols: 224, Tile: Tile{32, 96, 32}},
		{Format: MTL2, Cols: 192, Tile: Tile{64, 96, 32}}, {Format: W2A8M4, Cols: 64}, {Format: W2A8M4, Cols: 64, Block: 24},
		{Format: W2A8M4, Cols: 64, Block: 5}, {Format: I8Rows, Cols: 77},
		{Format: I8All, Cols: 77}, {Format: Q80, Cols: 300}, {Format: Q40, Cols: 64}, {Format: Q4K, Cols: 300},
		{Format: Q6K, Cols: 512}, {Format: I2SM3, Cols: 37}} {
		l.Rows = 192
		if l.Format == Q80 || l.Format == Q6K || l.Format == TQ10 {
			l.Rows = 101
		}
		var m Matrix
		if l.Format == I2SM3 {
			var err error
			m, err = New(l)
			require.NoError(t, err)
			for i := range m.Data {
				m.Data[i] = byte(r.IntN(3) | r.IntN(3)<<2 | r.IntN(3)<<4 | r.IntN(3)<<6)
			}
			copy(m.Data[len(m.Data)-tailBytes:], tailOf(1.5))
		} else {
			one := l.Format != I2SB && l.Format != I8Rows
			x := ternaryRows(r, 1, l.Rows*l.Cols)
			if !one {
				x = ternaryRows(r, l.Rows, l.Cols)
			}
			if l.Block == 24 { // scales of 24 rows each
				for i := range x[:l.Cols*24] {
					x[i] *= 2
				}
			}
			var err error
			m, err = Pack(l, x)
			require.NoError(t, err, l)
		}
		q, dev := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{})
		whole, err := q.Prepare(t.Context(), m)
		require.NoError(t, err, l)
		layout, err := checkWeights(&m)
		require.NoError(t, err)
		f := ternaryForm(&m, &layout)
		if b := l.Format.products(); b != nil {
			f = b.form(&m)
		} else { // by the definition
			x := make([]float32, m.Rows*m.meant())
			require.NoError(t, Decode(x, m))
			codes, factors := make([]uint32, m.Rows*f.words), make([]float32, m.Rows)
			for i := range m.Rows {
				factors[i], err = prepareRow(codes[i*f.words:(i+1)*f.words], x[i*m.meant():(i+1)*m.meant()])
				require.NoError(t, err)
			}
			require.Equal(t, codes, contents[uint32](t, whole.main.codes), l)
			require.Equal(t, factors, contents[float32](t, whole.main.by), l)
		}
		require.Less(t, f.band, m.Rows, "%v has pieces", l)
		least := int64(f.band) * int64(4*f.words+f.bytes+4*f.numbers)
		for _, budget := range []int64{least, 2*least + 1, 3 * least} {
			pieces, err := NewQuantizer(dev, QuantizerOptions{Budget: budget})
			require.NoError(t, err)
			w, err := pieces.Prepare(t.Context(), m)
			require.NoError(t, err, "%v %d", l, budget)
			require.Equal(t, contents[uint32](t, whole.main.codes), contents[uint32](t, w.main.codes), "%v %d", l, budget)
			a, err := whole.main.by.As(runtime.U8)
			require.NoError(t, err)
			b, err := w.main.by.As(runtime.U8)
			require.NoError(t, err)
			require.Equal(t, contents[uint8](t, a), contents[uint8](t, b), "%v %d", l, budget)
			require.NoError(t, errors.Join(a.Close(), b.Close(), w.Close(), pieces.Close()))
		}
		none, err := NewQuantizer(dev, QuantizerOptions{Budget: least - 1})
		require.NoError(t, err)
		live := dev.Stats().Live
		_, err = none.Prepare(t.Context(), m)
		assert.ErrorIs(t, err, driver.ErrBudget, l)
		assert.Equal(t, live, dev.Stats().Live)
		require.NoError(t, errors.Join(none.Close(), whole.Close()))
	}
}

// contents returns what a buffer has.
func contents[T runtime.Element](t *testing.T, b *runtime.Buffer) []T {
	x := make([]T, b.Len())
	require.NoError(t, runtime.Read(t.Context(), b, x))
	return x
}

// Preparing takes the budget beside the weights, on the host and on the device, however large they are.
func TestPrepareBudget(t *testing.T) {
	const budget, rows, cols = 512 << 10, 2048, 2048
	q, dev := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{Budget: budget})
	for _, l := range []Layout{{Format: TQ20}, {Format: I2SM1}, {Format: Q40}, {Format: Q6K}} {
		l.Rows, l.Cols = rows, cols
		m, err := New(l)
		require.NoError(t, err)
		first, err := q.Prepare(t.Context(), m) // compiles
		require.NoError(t, err)
		require.NoError(t, first.Close())
		live := dev.Stats().Live
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		w, err := q.Prepare(t.Context(), m)
		require.NoError(t, err)
		goruntime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(budget+budget/2),
			"%v: all that was allocated is more than its peak", l.Format)
		assert.LessOrEqual(t, dev.Stats().Live-live, w.main.Bytes()+8<<10)
		require.NoError(t, w.Close())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m, err := New(Layout{Format: TQ20, Rows: rows, Cols: cols})
	require.NoError(t, err)
	live := dev.Stats().Live
	_, err = q.Prepare(ctx, m)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, live, dev.Stats().Live)
}

// A context that ends between two pieces leaves nothing that looks like a result.
func TestQuantizerCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	q, _ := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{Progress: func(done, all int) {
		calls++
		assert.Less(t, done, all)
		cancel()
	}})
	const rows, cols = 24, 256 << 10
	x := make([]float32, rows*cols)
	for i := range x {
		x[i] = 1
	}
	m, err := New(Layout{Format: Q80, Rows: rows, Cols: cols})
	require.NoError(t, err)
	require.NoError(t, Encode(m, x))
	err = q.Encode(ctx, m, x)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, calls)
	assert.Equal(t, -1, slices.IndexFunc(m.Data, func(b byte) bool { return b != 0 }))
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, Encode(m, x))
	assert.ErrorIs(t, q.Decode(ctx, x, m), context.Canceled)
	assert.Equal(t, -1, slices.IndexFunc(x, func(v float32) bool { return v != 0 }))
	assert.Equal(t, 2, calls)
	assert.Zero(t, q.Stats().TotalOperations)

	// Before it begins, nothing changes.
	x[0] = 3
	assert.ErrorIs(t, q.Decode(ctx, x, m), context.Canceled)
	assert.Equal(t, float32(3), x[0])
	w, err := q.Prepare(t.Context(), Matrix{Layout: Layout{Format: I8Rows, Rows: 1, Cols: 1}, Data: []byte{1},
		Scales: []float32{1}})
	require.NoError(t, err)
	defer w.Close()
	y := []float32{4}
	assert.ErrorIs(t, w.Mul(ctx, y, x, 1), context.Canceled)
	assert.Equal(t, []float32{4}, y)
}

// Many at once lose no count.
func TestQuantizerConcurrent(t *testing.T) {
	q, _ := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{Budget: 8192})
	w := ternaryRows(rand.New(rand.NewPCG(5, 5)), 1, 16*300)
	m, err := Pack(Layout{Format: TQ10, Rows: 16, Cols: 300}, w)
	require.NoError(t, err)
	weights, err := q.Prepare(t.Context(), m)
	require.NoError(t, err)
	defer weights.Close()
	want := make([]float32, 2*16)
	require.NoError(t, weights.Mul(t.Context(), want, w, 2))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				mine, err := New(m.Layout)
				assert.NoError(t, err)
				mine.K = 300
				assert.NoError(t, q.Encode(t.Context(), mine, w))
				assert.Equal(t, m.Data, mine.Data)
				y := make([]float32, len(want))
				assert.NoError(t, weights.Mul(t.Context(), y, w, 2))
				assert.Equal(t, want, y)
				_, _ = q.Stats().Summary(), q.Receipt()
			}
		})
	}
	all.Wait()
	s := q.Stats()
	assert.Equal(t, []int64{81, 40, 41}, []int64{s.TotalOperations, s.QuantizationOperations, s.MatmulOperations})
}

func TestQuantizerNames(t *testing.T) {
	for name, want := range map[string]Provider{"CUDAkernel": "cuda", "rocm": "rocm", "AVX512": "avx512",
		"Avx2Kernel": "avx2", "NEON": "neon", "go": "fallback", "FallbackKernel": "fallback", "metal": "metal",
		"OpenCLKernel": "opencl"} {
		p, err := ParseProvider(name)
		require.NoError(t, err)
		assert.Equal(t, want, p)
		again, err := ParseProvider(p.String())
		require.NoError(t, err)
		assert.Equal(t, p, again)
	}
	q, dev := quantizer(t, runtime.Config{CPUKernels: "go"}, "cpu:0", QuantizerOptions{})
	assert.Equal(t, "FallbackKernel", q.ActiveProvider().String())
	for _, o := range []QuantizerOptions{{Codecs: "mmx"}, {Budget: -1}} {
		_, err := NewQuantizer(dev, o)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	}
	_, err := NewQuantizer(dev, QuantizerOptions{Codecs: "CudaKernel"})
	assert.ErrorIs(t, err, driver.ErrUnsupported)
}

// The self-validation of the specification: products of a_i = (i mod 3) - 1 and b_i = i mod 2, on every device,
// with an error of at most a millionth of the magnitudes that are added.
func TestSelfValidation(t *testing.T) {
	devices(t, func(t *testing.T, dev *runtime.Device) {
		q, err := NewQuantizer(dev, QuantizerOptions{})
		require.NoError(t, err)
		defer q.Close()
		for _, s := range [][3]int{{64, 64, 64}, {256, 256, 256}, {1024, 1024, 1024}, {2048, 1024, 512}} {
			rows, n, k := s[0], s[1], s[2]
			if slow := dev.Info().ID != hostName || dev.Session().Config().CPUKernels == "go"; k > 256 &&
				(slow || testing.Short()) {
				continue // the same sizes take seconds there
			}
			a, b := make([]float32, n*k), make([]float32, rows*k)
			for i := range a {
				a[i] = float32(i%3 - 1)
			}
			for i := range b {
				b[i] = float32(i % 2)
			}
			m, err := Pack(Layout{Format: I2SB, Rows: n, Cols: k}, a)
			require.NoError(t, err)
			w, err := q.Prepare(t.Context(), m)
			require.NoError(t, err)
			y := make([]float32, rows*n)
			require.NoError(t, w.Mul(t.Context(), y, b, rows))
			require.NoError(t, w.Close())
			for i, v := range y { // k is even, so that all rows of b are 0, 1, 0, 1 and so on
				want, size := 0, 0
				if i >= n {
					if v != y[i%n] {
						t.Fatalf("%v: result %d is %v, not %v", s, i, v, y[i%n])
					}
					continue
				}
				for j := 1; j < k; j += 2 {
					c := (i*k+j)%3 - 1
					want, size = want+c, size+c*c
				}
				require.InDelta(t, want, v, 1e-6*float64(size), "%v: result %d", s, i)
			}
		}
	})
}

// Five matrices of 10 MB, encoded, decoded and multiplied, leave nothing on the device and less than a megabyte
// on the host.
func TestNothingLeft(t *testing.T) {
	q, dev := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{})
	const n, k = 2500, 1024
	x, y, z := ternaryRows(rand.New(rand.NewPCG(19, 20)), 1, n*k), make([]float32, n*k), make([]float32, n)
	require.NoError(t, Ternary(x, x, 0.5)) // which 16 bits have
	heap := func() int64 {
		var s goruntime.MemStats
		goruntime.GC()
		goruntime.GC() // also what a sync.Pool had
		goruntime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	round := func() {
		m, err := New(Layout{Format: TQ20, Rows: n, Cols: k})
		require.NoError(t, err)
		require.NoError(t, q.Encode(t.Context(), m, x))
		require.NoError(t, q.Decode(t.Context(), y, m))
		w, err := q.Prepare(t.Context(), m)
		require.NoError(t, err)
		require.NoError(t, w.Mul(t.Context(), z, x[:k], 1))
		require.NoError(t, w.Close())
		require.NoError(t, dev.Sync(t.Context()))
	}
	round() // what is made once
	live, before := dev.Stats().Live, heap()
	for range 5 {
		round()
	}
	assert.Equal(t, live, dev.Stats().Live)
	assert.LessOrEqual(t, heap()-before, int64(1<<20))
	assert.True(t, slices.Equal(x, y))
}

// TestReceiptOfFewNumbers checks that a receipt does not name vector instructions where there is no whole group
// for them.
func TestReceiptOfFewNumbers(t *testing.T) {
	q, _ := quantizer(t, runtime.Config{}, "cpu:0", QuantizerOptions{})
	x := []float32{1, -1, 0, 1, 1}
	m, err := New(Layout{Format: I2SB, Rows: 1, Cols: 5})
	require.NoError(t, err)
	require.NoError(t, q.Encode(t.Context(), m, x))
	require.NoError(t, q.Decode(t.Context(), x, m))
	assert.Equal(t, []string{"decode I2S_B go", "encode I2S_B go"}, slices.Sorted(slices.Values(q.Receipt().Kernels)))
}
