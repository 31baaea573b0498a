package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// numberedUnits returns n units with different texts.
func numberedUnits(t *testing.T, n int) (units []*source.Unit) {
	for i := range n {
		u, err := source.Parse(nullText+strings.Repeat(" ", i), source.Options{Name: fmt.Sprintf("%d.cl", i)})
		require.NoError(t, err)
		units = append(units, u)
	}
	return units
}

func TestPrograms(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	units := numberedUnits(t, 20)
	first, err := d.Program(t.Context(), units[2])
	require.NoError(t, err)
	programs, err := d.Programs(t.Context(), append(units, units[7]))
	require.NoError(t, err)
	require.Len(t, programs, 21)
	for i, p := range programs[:20] {
		require.NotNil(t, p, "%d", i)
		assert.Same(t, units[i], p.Unit())
		assert.Equal(t, "compiled", p.Built().From)
	}
	assert.EqualValues(t, 20, b.compiles.Load(), "each unit once")
	assert.Same(t, first.core, programs[2].core)
	assert.Same(t, programs[7].core, programs[20].core)
	require.NoError(t, programs[7].Close())
	_, err = programs[20].Kernel("axpy")
	require.NoError(t, err, "each handle is the caller's own")
	again, err := d.Programs(t.Context(), units)
	require.NoError(t, err)
	assert.Same(t, programs[0].core, again[0].core)
	assert.EqualValues(t, 20, b.compiles.Load())

	none, err := d.Programs(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, none)
	_, err = d.Programs(t.Context(), units, ProgramOptions{}, ProgramOptions{})
	assert.ErrorIs(t, err, ErrInvalidArgument)
	var noContext context.Context
	_, err = d.Programs(noContext, units)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	_, err = d.Programs(t.Context(), units, ProgramOptions{Implementation: Native})
	assert.ErrorIs(t, err, ErrUnsupported)
	require.NoError(t, d.Close())
	_, err = d.Programs(t.Context(), units)
	assert.ErrorIs(t, err, ErrClosed)
}

// TestProgramsFailAlone checks that a unit that does not build leaves the others as they are.
func TestProgramsFailAlone(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	units := numberedUnits(t, 4)
	var mu sync.Mutex
	left := 1
	b.compile = func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if left--; left < 0 {
			return nil
		}
		return &BuildError{Source: "x.cl", Log: "x.cl:3: error: no"}
	}
	programs, err := d.Programs(t.Context(), []*source.Unit{units[0], nil, units[1], units[2], units[3]})
	var errs ProgramErrors
	require.ErrorAs(t, err, &errs)
	require.Len(t, errs, 5)
	assert.ErrorIs(t, errs[1], ErrInvalidArgument)
	assert.ErrorIs(t, err, ErrCompile)
	assert.ErrorContains(t, err, "2 of 5 programs: ")
	built := 0
	for i, p := range programs {
		assert.Equal(t, p == nil, errs[i] != nil, "%d", i)
		if p != nil {
			built++
			require.NoError(t, p.Close())
		}
	}
	assert.Equal(t, 3, built)
	assert.Len(t, errs.Unwrap(), 2)
}

func TestProgramsAreCancelled(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	units := numberedUnits(t, 8)
	ctx, cancel := context.WithCancel(t.Context())
	b.compile = func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }
	programs, err := d.Programs(ctx, units)
	assert.ErrorIs(t, err, context.Canceled)
	for _, p := range programs {
		assert.Nil(t, p)
	}
	b.compile = nil
	_, err = d.Programs(t.Context(), units)
	assert.NoError(t, err, "a cancellation is not remembered")
}

// batchDevice compiles several units in one call.
type batchDevice struct {
	*nullDevice
	batches [][]*source.Unit
}

func (d *batchDevice) CompileAll(_ context.Context, units []*source.Unit, _ []string) ([]driver.Binary, []error) {
	d.batches = append(d.batches, units)
	bins, errs := make([]driver.Binary, len(units)), make([]error, len(units))
	for i, u := range units {
		if u.Name() == "1.cl" {
			errs[i] = errors.New("this one not")
			continue
		}
		bins[i] = driver.Binary{Code: []byte(u.Name())}
	}
	return bins, errs
}

func TestProgramsInOneCall(t *testing.T) {
	_, d := open(t, &nullBackend{}, Config{})
	c, err := d.get("test")
	require.NoError(t, err)
	batch := &batchDevice{nullDevice: &nullDevice{b: &nullBackend{}}}
	c.compiler = batch
	units := numberedUnits(t, 5)
	programs, err := d.Programs(t.Context(), units)
	assert.ErrorContains(t, err, "1 of 5 programs: this one not")
	require.Len(t, batch.batches, 1)
	assert.Equal(t, units, batch.batches[0])
	assert.Nil(t, programs[1])
	assert.NotNil(t, programs[4])
	assert.EqualValues(t, 4, d.Stats().Compiles)
}
