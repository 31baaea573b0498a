package cluster

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/half"
)

// open opens a device in a session of its own, so that two of one name are two devices that share nothing. It skips the
// test if the device is not here.
func open(t testing.TB, name string) *runtime.Device {
	t.Helper()
	cfg := runtime.Config{}
	if dir := os.Getenv("CONCORD_SIM_DIR"); dir == "" {
		cfg.SimDir = filepath.Join("..", "..", "build", "sim")
	}
	session, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	dev, err := session.Open(context.Background(), name)
	if err != nil {
		t.Skipf("%s: %v", name, err)
	}
	return dev
}

// named opens several devices, of which those of one name share nothing.
func named(t testing.TB, names ...string) (devs []*runtime.Device) {
	t.Helper()
	for _, name := range names {
		devs = append(devs, open(t, name))
	}
	return devs
}

// group closes a group at the end of the test.
func group(t testing.TB, g *Group, err error) *Group {
	t.Helper()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, g.Close()) })
	return g
}

// virtual returns members of cpu:0.
func virtual(t testing.TB, n int, o Options) *Group {
	t.Helper()
	g, err := o.Virtual(open(t, "cpu:0"), n)
	return group(t, g, err)
}

// number has a type of elements: how float64 becomes it, and what a computation in float64 may be away from it.
type number interface {
	runtime.Element
}

var nan = math.NaN()

// bytesOf returns the memory of elements.
func bytesOf[T number](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*runtime.TypeOf[T]().Size())
}

// of converts a number to the type of elements.
func of[T number](x float64) T {
	var v T
	switch p := any(&v).(type) {
	case *runtime.Float16:
		*p = half.ToFloat16(x)
	case *runtime.BFloat16:
		*p = half.ToBFloat16(x)
	case *float32:
		*p = float32(x)
	case *float64:
		*p = x
	case *int8:
		*p = int8(x)
	case *int16:
		*p = int16(x)
	case *int32:
		*p = int32(x)
	case *int64:
		*p = int64(x)
	case *uint8:
		*p = uint8(x)
	case *uint16:
		*p = uint16(x)
	case *uint32:
		*p = uint32(x)
	case *uint64:
		*p = uint64(x)
	}
	return v
}

// float converts an element to float64.
func float[T number](v T) float64 {
	switch v := any(v).(type) {
	case runtime.Float16:
		return v.Float64()
	case runtime.BFloat16:
		return v.Float64()
	case float32:
		return float64(v)
	case float64:
		return v
	}
	return math.NaN()
}

// numbers returns n elements of a member: of floats of some magnitudes, of integers any bits.
func numbers[T number](seed uint64, rank, n int) []T {
	r := rand.New(rand.NewPCG(seed, uint64(rank)))
	x := make([]T, n)
	for i := range x {
		if runtime.TypeOf[T]().IsFloat() {
			x[i] = of[T](r.NormFloat64() * float64(1+i%7))
			continue
		}
		bits := r.Uint64()
		x[i] = *(*T)(unsafe.Pointer(&bits)) // the low bytes
	}
	return x
}

// combined checks an element of a result: whole numbers exactly, floats within their bounds.
func combined[T number](op Op, xs []T, got T) error {
	if runtime.TypeOf[T]().IsFloat() {
		return combinedFloats(op, xs, got)
	}
	want := whole(op, xs)
	if got != want {
		return fmt.Errorf("%v of %v is %v, not %v", op, xs, got, want)
	}
	return nil
}

func combinedFloats[T number](op Op, xs []T, got T) error {
	k, want, sizes := float64(len(xs)), 0.0, 0.0
	if op != Sum && op != Mean {
		want = float(xs[0])
	}
	for i, v := range xs {
		x := float(v)
		sizes += math.Abs(x)
		switch {
		case op == Sum || op == Mean:
			want += x
		case i == 0:
		case op == Product:
			want *= x
		case op == Max:
			want = max(want, x) // NaN if one is
		default:
			want = min(want, x)
		}
	}
	unit, ulp := math.Pow(2, -23), 0.0
	switch runtime.TypeOf[T]() {
	case runtime.F64:
		unit = math.Pow(2, -52)
	case runtime.F16:
		ulp = math.Pow(2, -11)
	case runtime.BF16:
		ulp = math.Pow(2, -8)
	}
	bound := k * unit * sizes
	switch op {
	case Mean:
		want /= k
		bound = bound/k + 4*unit*math.Abs(want)
	case Product:
		bound = k * unit * math.Abs(want)
	case Max, Min:
		bound, ulp = 0, 0
	}
	bound += ulp * math.Abs(want)
	if ulp > 0 && op != Max && op != Min {
		bound += math.Pow(2, -24) // of halves that are denormal
	}
	if g := float(got); math.IsNaN(want) != math.IsNaN(g) || math.Abs(g-want) > bound {
		return fmt.Errorf("%v of %v is %v, not %v within %g", op, xs, g, want, bound)
	}
	return nil
}

// whole computes with integers of the type.
func whole[T number](op Op, xs []T) T {
	v := xs[0]
	for _, x := range xs[1:] {
		v = step(op, v, x)
	}
	if op == Mean {
		return divide(v, len(xs))
	}
	return v
}

func step[T number](op Op, a, b T) T {
	switch op {
	case Product:
		return a * b
	case Max:
		return max(a, b)
	case Min:
		return min(a, b)
	}
	return a + b
}

func divide[T number](v T, k int) T { return v / of[T](float64(k)) }

// deadline is a context that ends long before the test's.
func deadline(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// do runs f for every member of groups that make one job, each of which has one member or several.
func do(groups []*Group, f func(m *Member) error) []error {
	var members []*Member
	for _, g := range groups {
		members = append(members, g.Members()...)
	}
	errs := make([]error, len(members))
	done := make(chan struct{})
	for i, m := range members {
		go func() {
			defer func() { done <- struct{}{} }()
			errs[i] = f(m)
		}()
	}
	for range members {
		<-done
	}
	return errs
}
