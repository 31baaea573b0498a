package driver

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSimulatedBackends(t *testing.T) {
	var list []Backend
	for _, name := range []string{"sim-rocm", "cpu", "other", "sim-cuda", "opencl", "abacus", "cuda"} {
		b := Missing(name, Disabled, "")
		for known, d := range Reserved() {
			if known == name {
				b = described{b, d}
			}
		}
		list = append(list, b)
	}
	list = append(list, described{Missing("best", Disabled, ""), Description{Preference: 5}})
	slices.SortFunc(list, compareBackends)
	var names []string
	for _, b := range list {
		names = append(names, b.Name())
	}
	assert.Equal(t, []string{"best", "cuda", "opencl", "abacus", "other", "cpu", "sim-cuda", "sim-rocm"}, names)
	assert.Equal(t, Description{Title: "abacus"}, Describe(Missing("abacus", Disabled, "")),
		"a backend that does not describe itself has its name as the title")
}

// described is a backend with a description.
type described struct {
	Backend
	d Description
}

func (b described) Describe() Description { return b.d }

func TestErrors(t *testing.T) {
	for fine, coarse := range map[error]error{
		ErrBufferOverflow: ErrInvalidArgument, ErrEventNotRecorded: ErrInvalidArgument, ErrTimingDisabled: ErrInvalidArgument,
		ErrNoHostMemory: ErrInvalidArgument, ErrNoDeviceMemory: ErrInvalidArgument, ErrDeviceIndex: ErrNoDevice,
		ErrFakeDevice: ErrNoDevice, ErrAllBackendsExhausted: ErrNoDevice, ErrUnsupportedPrecision: ErrUnsupported,
		ErrNoCompiler: ErrUnsupported, ErrNoKernel: ErrCompile, ErrLocalMemory: ErrLaunch, ErrFormat: ErrCorrupt,
	} {
		assert.ErrorIs(t, fine, coarse)
		assert.NotErrorIs(t, coarse, fine)
	}
	err := error(&OpError{Backend: "cuda", Device: "cuda:0", Op: "alloc " + FormatBytes(8<<30), Code: 2,
		Err: ErrOutOfMemory})
	assert.EqualError(t, err, "cuda:0: alloc 8.0 GiB: out of device memory (code 2)")
	assert.ErrorIs(t, fmt.Errorf("while training: %w", err), ErrOutOfMemory)
	build := &BuildError{Source: "k.cl", Target: "host", Log: "In file\nk.cl:3:4: error: no\nmore", Err: ErrTimeout}
	assert.ErrorIs(t, build, ErrCompile)
	assert.ErrorIs(t, build, ErrTimeout)
	assert.EqualError(t, build, "k.cl: build for host: program did not build: k.cl:3:4: error: no: timed out")
	assert.True(t, errors.Is(&BuildError{}, ErrCompile))
	refused := &BuildError{Source: "k.cl", Target: "host", Log: ErrTimeout.Error(), Err: ErrTimeout}
	assert.EqualError(t, refused, "k.cl: build for host: program did not build: timed out",
		"a cause that is the log is said once")
	assert.ErrorIs(t, refused, ErrTimeout)
}

func TestFormatBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 8 << 30: "8.0 GiB",
		math.MaxInt64: "8.0 EiB"} {
		assert.Equal(t, want, FormatBytes(n))
	}
}

func TestTypes(t *testing.T) {
	for _, typ := range append(Types(), Bool) {
		got, err := ParseType(typ.String())
		require.NoError(t, err)
		assert.Equal(t, typ, got)
		assert.Positive(t, typ.Size())
		n, err := typ.Stored().Bytes(3)
		require.NoError(t, err)
		assert.EqualValues(t, 3*typ.Size(), n)
		switch kind := typ.Kind().String(); typ { // each is one of them, but Bool
		case F32, F64, F16, BF16:
			assert.True(t, typ.IsFloat() && !typ.IsInteger() && !typ.IsSigned(), typ)
		case Bool:
			assert.False(t, typ.IsFloat() || typ.IsInteger() || typ.IsSigned())
		default:
			assert.True(t, typ.IsInteger() && !typ.IsFloat(), typ)
			assert.Equal(t, kind[0] != 'u', typ.IsSigned(), typ)
		}
	}
	for typ, want := range map[Type]error{NoType: ErrInvalidArgument, Bool: ErrInvalidArgument, 200: ErrInvalidArgument} {
		_, err := typ.Bytes(1)
		assert.ErrorIs(t, err, want, typ)
	}
	_, err := F32.Bytes(-1)
	assert.ErrorIs(t, err, ErrInvalidArgument)
	_, err = F32.Bytes(math.MaxInt / 4)
	assert.NoError(t, err)
	_, err = F32.Bytes(math.MaxInt/4 + 1)
	assert.ErrorIs(t, err, ErrTooLarge)
	_, err = ParseType("f8")
	assert.ErrorIs(t, err, ErrInvalidArgument)
	assert.Equal(t, "Type(200)", Type(200).String())
	assert.Zero(t, Type(200).Size())
}

func TestRegister(t *testing.T) {
	assert.Panics(t, func() { Register(nil) })
	for _, name := range []string{"", "NPU", "nPu", "8bit", "-npu", "n pu", "npu:0", "npü"} {
		assert.Panics(t, func() { Register(Missing(name, Unavailable, "")) }, name)
	}
	assert.Empty(t, Backends())
}
