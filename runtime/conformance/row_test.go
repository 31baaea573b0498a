package conformance

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
)

// notes is a T that keeps what a row says.
type notes struct {
	ctx             context.Context
	mu              sync.Mutex
	failed, skipped []string
}

func (n *notes) Context() context.Context { return n.ctx }
func (n *notes) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = append(n.failed, fmt.Sprintf(format, args...))
}
func (n *notes) Fatalf(format string, args ...any) {
	n.Errorf(format, args...)
	goruntime.Goexit()
}
func (n *notes) Skipf(format string, args ...any) {
	n.skipped = append(n.skipped, fmt.Sprintf(format, args...))
	goruntime.Goexit()
}

// checked checks a row on cpu:0, and returns what it said and the device.
func checked(ctx context.Context, r Row, except Exceptions) (*notes, *runtime.Device) {
	n := &notes{ctx: ctx}
	var d *runtime.Device
	var wg sync.WaitGroup
	wg.Go(func() {
		r.Check(n, func(t T) *runtime.Device {
			var err error
			if d, err = runtime.Open(context.Background(), "cpu:0"); err != nil {
				t.Fatalf("%v", err)
			}
			return d
		}, except)
	})
	wg.Wait()
	return n, d
}

// TestOutcomes: what a T without Helper learns of rows, and that no row leaves its device open.
func TestOutcomes(t *testing.T) {
	inner := func(t *row) { equal(t, 1, 2, "numbers") }
	stops := func(t *row, d *device) {
		d.alloc(t, runtime.F32, 4)
		inner(t)
		need(t, false, "over")
	}
	list := func(reason string) map[string]string { return map[string]string{"a/row": reason} }
	refused := func(t *row, _ *device) { t.refused("no") }
	fine := func(t *row, d *device) { d.alloc(t, runtime.F32, 4) }
	failing, unsupported := Exceptions{Failing: list("later")}, Exceptions{Unsupported: list("later")}
	for what, c := range map[string]struct {
		check           func(t *row, d *device)
		except          Exceptions
		failed, skipped []string // patterns
	}{
		"passes": {fine, Exceptions{}, nil, nil},
		"fails": {stops, Exceptions{}, []string{`^row_test.go:\d+, from row_test.go:\d+: numbers: got 2, want 1$`,
			`^row_test.go:\d+: over$`}, nil},
		"leaves memory": {func(t *row, d *device) {
			_, err := d.Alloc(runtime.F32, 4)
			must(t, err)
		}, Exceptions{}, []string{"bytes live at the end"}, nil},
		"known to fail": {
			stops, failing, nil, []string{`^known to fail: later: .*numbers: got 2, want 1; row_test.go:\d+: over$`}},
		"fails and goes on":  {func(t *row, _ *device) { inner(t) }, failing, nil, []string{"later.*numbers"}},
		"known, and passes":  {fine, failing, []string{"listed as failing .later., and passed"}, nil},
		"refused":            {refused, Exceptions{}, []string{`^row_test.go:\d+: no; nothing in Info says so`}, nil},
		"refused, as listed": {refused, unsupported, nil, []string{"^no; listed: later"}},
		"not refused":        {fine, unsupported, []string{"was not skipped"}, nil},
	} {
		n, d := checked(t.Context(), Row{Name: "a/row", check: c.check}, c.except)
		for i, got := range [][]string{n.failed, n.skipped} {
			want := [][]string{c.failed, c.skipped}[i]
			require.Len(t, got, len(want), "%s: %q", what, got)
			for j := range want {
				assert.Regexp(t, want[j], got[j], what)
			}
		}
		assert.ErrorIs(t, d.Sync(t.Context()), runtime.ErrClosed, what)
	}
}

// TestRowsEnd: no row goes on for long when its context is done, at once or on its way.
func TestRowsEnd(t *testing.T) {
	for _, after := range []time.Duration{0, 50 * time.Millisecond} {
		passed := 0
		for _, r := range Rows() {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			start := time.Now()
			n, d := checked(ctx, r, Exceptions{})
			cancel()
			assert.Less(t, time.Since(start), 5*time.Second, r.Name)
			assert.Error(t, d.Sync(t.Context()), "%s left its device open", r.Name)
			if len(n.failed) == 0 {
				passed++
			}
		}
		assert.True(t, after > 0 || passed < 8, "%d rows do not wait", passed)
	}
}

// TestKnown: the lists have only names of rows, and reasons.
func TestKnown(t *testing.T) {
	for _, backend := range []string{"cpu", "opencl", "cuda", "sim-metal"} {
		assert.NoError(t, Known(runtime.Info{Backend: backend, Simulated: true}).Validate())
	}
	assert.Contains(t, Known(runtime.Info{Backend: "sim-metal"}).Unsupported, "kernel/occupancy")
	assert.Empty(t, Known(runtime.Info{Backend: "sim-cuda"}).Unsupported)
	assert.ErrorIs(t, Exceptions{Failing: map[string]string{"a/row": "later"}}.Validate(), runtime.ErrInvalidArgument)
}
