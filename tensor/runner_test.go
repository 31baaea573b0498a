package tensor

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/source"
)

// onRunner returns a scope on a Runner for opencl:0, and a function that gives that device up.
func onRunner(t *testing.T, c runtime.Config) (s *Scope, r *cluster.Runner, lose func()) {
	session, err := runtime.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	dev, err := session.Open(t.Context(), "opencl:0")
	if err != nil {
		t.Skip(err)
	}
	require.NoError(t, dev.Close())
	r, err = cluster.Failover{Session: session}.NewRunner(t.Context(), "opencl:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	s, err = NewRunnerScope(t.Context(), r)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		for _, name := range []string{"cpu:0", "opencl:0"} {
			if dev, err := session.Open(context.Background(), name); assert.NoError(t, err) {
				assert.Zero(t, dev.Stats().LiveBuffers, name)
				assert.NoError(t, dev.Close())
			}
		}
	})
	return s, r, func() {
		dev, err := session.Open(t.Context(), "opencl:0")
		require.NoError(t, err)
		_ = dev.Abandon(runtime.ErrDeviceLost)
		_ = dev.Close()
	}
}

// back has the Runner try its first device at the next unit.
func back(t *testing.T, r *cluster.Runner) { require.NoError(t, r.Resume("opencl:0")) }

// TestRunnerScope gives the device up between computations: what is made of the host's data is computed again, and what
// lived on the device alone is lost, with an error that says so.
func TestRunnerScope(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, r, lose := onRunner(t, runtime.Config{})
	read := func(want []float32, x *Tensor) {
		t.Helper()
		got, err := Read[float32](ctx, x)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	a, b := From(s, []float32{1, 2, 3, 4}, 2, 2), From(s, []float32{1, 0, 0, 2}, 2, 2)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, Save(ctx, path, map[string]*Tensor{"a": a}, nil))
	files, _, err := Load(s, path)
	require.NoError(t, err)
	y := a.MatMul(b).Add(1)
	top, at := y.Flatten().TopK(2, 0, true)
	parts := y.Transpose(0, 1).Narrow(0, 1, 1)
	inner := s.Scope()
	f := Compile(s, func(args ...*Tensor) []*Tensor { return []*Tensor{args[0].MatMul(b).Sub(y)} })
	require.NoError(t, Eval(ctx, y, top, parts))
	for range 2 {
		out, err := f.CallDonating(ctx, []bool{true}, a)
		require.NoError(t, err)
		read([]float32{-1, -1, -1, -1}, out[0])
		kept, err := a.Mul(Ones(inner, F32, 1)).Keep(ctx)
		require.NoError(t, err)
		require.Equal(t, "opencl:0", s.Device().String())
		lose()
		read([]float32{4, 10, 8, 18}, y.Mul(2))
		require.Equal(t, "cpu:0", s.Device().String())
		read([]float32{9, 5}, top)
		index, err := Read[uint32](ctx, at.Cast(U32))
		require.NoError(t, err)
		assert.Equal(t, []uint32{3, 1}, index)
		read([]float32{5, 9}, parts)
		read([]float32{1, 2, 3, 4}, a)
		read([]float32{1, 2, 3, 4}, files["a"])
		_, err = Read[float32](ctx, kept)
		lost := new(LostError)
		require.ErrorAs(t, err, &lost)
		assert.ErrorIs(t, err, runtime.ErrDeviceLost)
		assert.Contains(t, err.Error(), "on a device that is lost")
		_, err = f.Call(ctx, out[0])
		assert.ErrorAs(t, err, &lost)
		out, err = f.CallDonating(ctx, []bool{true}, a)
		require.NoError(t, err)
		read([]float32{-1, -1, -1, -1}, out[0])
		back(t, r)
		read([]float32{-1, -1, -1, -1}, out[0]) // the CPU has it still
	}
	assert.Zero(t, r.Stats().Exhausted)
	assert.Positive(t, r.Stats().Fallbacks)
	_, err = s.Stream()
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
	_, _, err = f.CallOwned(ctx, nil, a)
	assert.ErrorIs(t, err, runtime.ErrUnsupported)
	require.NoError(t, s.Close())
	_, err = Read[float32](ctx, a)
	assert.ErrorIs(t, err, ErrScope)
}

// TestRunnerScopeCarries suspends a device that works: what it has comes along, there and back.
func TestRunnerScopeCarries(t *testing.T) {
	ctx := t.Context()
	s, r, _ := onRunner(t, runtime.Config{})
	inner := s.Scope()
	x, err := From(s, []float32{1, 2, 3}).Mul(Ones(inner, F32, 1)).Keep(ctx)
	require.NoError(t, err)
	first := x
	f := Compile(s, func(args ...*Tensor) []*Tensor { return []*Tensor{args[0].Add(first)} })
	for i := range 6 {
		if i%2 == 0 {
			require.NoError(t, r.Suspend("opencl:0"))
		} else {
			back(t, r)
		}
		out, err := f.Call(ctx, x)
		require.NoError(t, err)
		assert.Equal(t, []string{"cpu:0", "opencl:0"}[i%2], s.Device().String())
		x, err = out[0].Mul(Ones(inner, F32, 1)).Keep(ctx)
		require.NoError(t, err)
		out, err = f.Call(ctx, x)
		require.NoError(t, err)
		require.NoError(t, Eval(ctx, out[0].Add(1)))
	}
	got, err := Read[float32](ctx, x)
	require.NoError(t, err)
	assert.Equal(t, []float32{7, 14, 21}, got)
}

// TestRunnerScopeResults has the results of each call as arguments of the next one, on devices that take turns: what
// one device has of an earlier call is no result of a later one.
func TestRunnerScopeResults(t *testing.T) {
	ctx := t.Context()
	s, r, _ := onRunner(t, runtime.Config{})
	f := Compile(s, func(args ...*Tensor) []*Tensor { return []*Tensor{args[0].Add(1)} })
	x := From(s, []float32{0})
	for i := range 12 {
		if i/3%2 == 0 {
			require.NoError(t, r.Suspend("opencl:0"))
		} else {
			back(t, r)
		}
		out, err := f.Call(ctx, x)
		require.NoError(t, err)
		x = out[0]
		got, err := Number(ctx, x)
		require.NoError(t, err)
		require.Equal(t, float64(i+1), got)
	}
}

// TestRunnerScopeRetries has a launch fail after a call was queued: the results of the call before are its arguments,
// and stay as they are.
func TestRunnerScopeRetries(t *testing.T) {
	ctx := t.Context()
	s, r, _ := onRunner(t, runtime.Config{})
	f := Compile(s, func(args ...*Tensor) []*Tensor { return []*Tensor{args[0].Mul(2)} })
	x := From(s, []float32{1})
	for i := range 6 {
		attempts := 0
		err := s.engine.unit(ctx, "test", func(ctx context.Context) error {
			out, err := f.Call(ctx, x)
			if attempts++; err == nil && attempts <= i%3 {
				return fmt.Errorf("planted: %w", runtime.ErrLaunch)
			}
			if err == nil {
				x = out[0]
			}
			return err
		})
		require.NoError(t, err)
	}
	got, err := Read[float32](ctx, x)
	require.NoError(t, err)
	assert.Equal(t, []float32{64}, got)
	assert.EqualValues(t, 6, r.Stats().Retries)
}

// failing is a kernel that takes about a second, and then divides by 0.
const failing = `kernel void failing(global const uint *seed, global uint *x, uint n, uint by) {
	uint v = seed[0];
	for (uint i = 0; i < n; i++) v = v * 1664525u + 1013904223u;
	x[0] = v / by;
}`

// divider returns a function of such a kernel with n rounds and a divisor.
func divider(t *testing.T, s *Scope) func(n, by uint32) *Tensor {
	unit, err := source.Parse(failing, source.Options{Name: "failing.cl", Features: s.Device().Features()})
	require.NoError(t, err)
	seed := From(s, []uint32{1})
	return func(n, by uint32) *Tensor {
		return Launch(Kernel{Unit: unit, Name: "failing", Grid: runtime.Items(1), Results: []Spec{{U32, []int{1}}}}, seed,
			Out(0), n, by)[0]
	}
}

// TestRunnerScopeCarriesFromFailed has launches fail on the CPU until its tries are over: what was kept there is still
// there, and comes along to the next device.
func TestRunnerScopeCarriesFromFailed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := cluster.NewRunner(ctx, "cpu:0", "opencl:0")
	if err != nil {
		t.Skip(err)
	}
	defer func() { assert.NoError(t, r.Close()) }()
	s, err := NewRunnerScope(ctx, r)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	divide := divider(t, s)
	x, err := From(s, []float32{1, 2}).Mul(Ones(s.Scope(), F32, 1)).Keep(ctx)
	require.NoError(t, err)
	err = s.engine.unit(ctx, "test", func(ctx context.Context) error {
		if s.Device().String() == "cpu:0" {
			return Eval(ctx, divide(1, 0))
		}
		return Eval(ctx, x)
	})
	require.NoError(t, err)
	got, err := Read[float32](ctx, x)
	require.NoError(t, err)
	assert.Equal(t, []float32{1, 2}, got)
	assert.Positive(t, r.Stats().Fallbacks)
}

// TestRunnerScopeEvaluatesInFunc has a function compute something while it is traced, as it may on one device. It hangs
// if that waits for the turn of the call.
func TestRunnerScopeEvaluatesInFunc(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	s, r, _ := onRunner(t, runtime.Config{})
	w := From(s, []float32{3}).Mul(2)
	moves := false
	f := Compile(s, func(args ...*Tensor) []*Tensor {
		if moves {
			assert.NoError(t, r.Suspend("opencl:0"))
		}
		n, err := Number(ctx, w)
		assert.NoError(t, err)
		return []*Tensor{args[0].Mul(n).Add(w)}
	})
	for i, want := range [][]float32{{12}, {12, 18}} { // in the second call what it computes is on another device
		x, err := From(s, []float32{1, 2}).Narrow(0, 0, i+1).Mul(Ones(s.Scope(), F32, 1)).Keep(ctx)
		require.NoError(t, err)
		out, err := f.Call(ctx, x)
		require.NoError(t, err)
		got, err := Read[float32](ctx, out[0])
		require.NoError(t, err)
		assert.Equal(t, want, got)
		moves = true
	}
}

// TestRunnerScopeTracesAnew has the stream fail in front of the first call of a compiled function: the stream drops
// what the function computes once, so that the call that is repeated must not find the trace of the one that failed.
func TestRunnerScopeTracesAnew(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := cluster.NewRunner(ctx, "cpu:0")
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	s, err := NewRunnerScope(ctx, r)
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	divide := divider(t, s)
	x, w := From(s, []float32{1, 2, 3, 4}, 2, 2), From(s, []float32{1, 0, 5, 2}, 2, 2)
	compiled := func(factor float64) *Func {
		around := w.Mul(factor).MatMul(w) // computed by the first call
		return Compile(s, func(args ...*Tensor) []*Tensor { return []*Tensor{args[0].MatMul(around)} })
	}
	_, err = compiled(3).Call(ctx, x) // loads the programs, so that the call that fails queues all in time
	require.NoError(t, err)
	require.NoError(t, Eval(ctx, divide(1, 1)))
	f, attempts := compiled(1), 0
	var out []*Tensor
	err = s.engine.unit(ctx, "test", func(ctx context.Context) error {
		if attempts++; attempts == 1 {
			require.NoError(t, Eval(ctx, divide(1e9, 0)))
		}
		var err error
		out, err = f.Call(ctx, x)
		require.NoError(t, err, "attempt %d", attempts)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, 2, attempts)
	got, err := Read[float32](ctx, out[0])
	require.NoError(t, err)
	assert.Equal(t, []float32{31, 8, 63, 16}, got)
	assert.EqualValues(t, 1, r.Stats().Retries)
}

// TestRunnerScopeRequire returns the loss with the policy "require", and goes on once the device works again.
func TestRunnerScopeRequire(t *testing.T) {
	ctx := t.Context()
	s, r, lose := onRunner(t, runtime.Config{Fallback: runtime.Require})
	y := From(s, []float32{1, 2}).Mul(3)
	require.NoError(t, Eval(ctx, y))
	lose()
	_, err := Read[float32](ctx, y)
	assert.ErrorIs(t, err, runtime.ErrDeviceLost)
	assert.Zero(t, r.Stats().Fallbacks)
	back(t, r)
	got, err := Read[float32](ctx, y)
	require.NoError(t, err)
	assert.Equal(t, []float32{3, 6}, got)
}

// TestRunnerScopeConcurrent describes and reads from several goroutines while the device is lost now and then.
func TestRunnerScopeConcurrent(t *testing.T) {
	s, r, lose := onRunner(t, runtime.Config{})
	base := From(s, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 10 {
				sum, err := Number(t.Context(), base.Mul(i).Add(j).Sum())
				assert.NoError(t, err)
				assert.Equal(t, float64(36*i+8*j), sum)
			}
		})
	}
	for range 3 {
		time.Sleep(20 * time.Millisecond)
		lose()
		back(t, r)
	}
	wg.Wait()
}
