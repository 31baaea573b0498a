// Package golden tests package tensor: every case of internal/verify/golden on every device, forward and backward. On
// devices that compile kernels, one case in four in float32, unless GOLDEN_FULL is set:
//
//	GOLDEN_FULL=1 go test -timeout 0 ./tests/golden
package golden

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/verify/golden"
	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/tensor"
)

// TestOperations: every operation that package tensor has, and every formula, has PyTorch's results
// and gradients on every device.
func TestOperations(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	for _, p := range probes {
		for _, info := range p.Devices {
			if !info.Simulated {
				t.Run(info.ID, func(t *testing.T) { everyCase(t, s, info.ID, golden.Plain, golden.Evaluated) })
			}
		}
		if len(p.Devices) == 0 {
			t.Run(p.Backend, func(t *testing.T) {
				require.NotContains(t, s.Config().Required, p.Backend, p.Reason)
				t.Skip(p.Reason)
			})
		}
	}
}

// TestOperationsUnfused is the same on the CPU where every operation is a kernel of its own.
func TestOperationsUnfused(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require, NoFusion: true})
	require.NoError(t, err)
	defer s.Close()
	everyCase(t, s, "cpu:0", golden.Plain, golden.Evaluated)
}

// TestOperationsCompiled is the same on the CPU by compiled functions.
func TestOperationsCompiled(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	everyCase(t, s, "cpu:0", golden.Plain, golden.Compiled)
}

// TestOperationsOfViews is the same on the CPU where inputs and cotangents are views.
func TestOperationsOfViews(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer s.Close()
	t.Run("strided", func(t *testing.T) { everyCase(t, s, "cpu:0", golden.Strided, golden.Evaluated) })
	t.Run("reshaped", func(t *testing.T) {
		everyCase(t, s, "cpu:0", golden.Reshaped, golden.Evaluated)
	})
}

// full selects every case on every device.
var full = os.Getenv("GOLDEN_FULL") != ""

func everyCase(t *testing.T, s *runtime.Session, device string, how golden.Layout, by golden.Way) {
	cases, err := golden.Load()
	require.NoError(t, err)
	d, err := s.Open(t.Context(), device)
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	scope := tensor.NewScope(d)
	defer func() { assert.NoError(t, scope.Close()) }()
	quick := full || strings.HasPrefix(device, "cpu:") // without a compiler
	if !quick {
		every := 4
		if testing.Short() {
			every = 16
		}
		cases = golden.Sample(cases, every)
	}
	for _, typ := range []tensor.Type{tensor.F64, tensor.F32} {
		t.Run(typ.String(), func(t *testing.T) {
			if device == "cpu:reference" && typ == tensor.F32 {
				t.Skip("computes in float64")
			}
			if typ == tensor.F64 && !quick {
				t.Skip("slow: GOLDEN_FULL is not set")
			}
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) {
					skip, err := c.Judge(t.Context(), scope, typ, how, by)
					require.NoError(t, err)
					if skip != "" {
						t.Skip(skip)
					}
				})
			}
		})
	}
}
