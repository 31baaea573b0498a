package cpu

// The vector kernels of csrc/cpu: the instruction sets, the choice of one for a device, and the
// call.

import (
	"fmt"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/runtime/driver"
)

// simdSet is one instruction set.
type simdSet struct {
	name   string // in CONCORD_CPU_KERNELS and KernelInfo.Implementation
	number simd.Set
	rows   int             // GEMM_ROWS in its C file
	bytes  int             // size of a vector register
	four   cpuid.FeatureID // of an instruction that adds four products of bytes to a sum
}

// simdSets are all sets in order of preference.
var simdSets = []*simdSet{
	{"avx512", simd.AVX512, 12, 64, cpuid.AVX512VNNI},
	{"avx2", simd.AVX2, 6, 32, cpuid.AVXVNNI},
	{"neon", simd.NEON, 8, 16, cpuid.UNKNOWN},
}

// goKernels is the name of the implementations in Go.
const goKernels = "go"

// missing returns the reason why the set cannot be used, or nil if it can.
func (s *simdSet) missing() error {
	if !simd.Supports(s.name) {
		return fmt.Errorf("this processor has no %s: %w", s.name, driver.ErrUnsupported)
	}
	if !s.number.Here() {
		return fmt.Errorf("this binary has no %s kernels; they need cgo, a Unix system and a build without the tag "+
			"no%[1]s: %w", s.name, driver.ErrUnsupported)
	}
	return nil
}

// chooseSIMD returns the set that the configuration names, or otherwise the first that can be
// used; nil means Go.
func chooseSIMD(cfg *driver.Config) (*simdSet, error) {
	want := ""
	if cfg != nil {
		want = cfg.CPUKernels
	}
	if want == goKernels {
		return nil, nil
	}
	names := make([]string, 0, len(simdSets)+1)
	for _, s := range simdSets {
		names = append(names, s.name)
		switch err := s.missing(); {
		case want == s.name && err != nil:
			return nil, fmt.Errorf("CPUKernels: %w", err)
		case err == nil && (want == "" || want == s.name):
			return s, nil
		}
	}
	if want != "" {
		return nil, fmt.Errorf("CPUKernels %q is not one of %s, %s: %w", want, strings.Join(names, ", "), goKernels,
			driver.ErrInvalidArgument)
	}
	return nil, nil
}

// multipliesBytes reports whether the set's functions for four products of bytes may be called.
func (s *simdSet) multipliesBytes() bool { return s.four != cpuid.UNKNOWN && cpuid.CPU.Has(s.four) }

// run calls a function of the set on this thread. Addresses among the words are of memory that
// stays where it is until then: blocks of the device, which its table keeps alive (small ones may
// be in Go's heap, whose objects do not move), never of a stack.
func (s *simdSet) run(op simd.Op, words ...uint64) { s.number.Run(op, &words[0]) }

// cacheSizes returns the sizes of the second- and third-level cache in bytes, or usual sizes if the
// processor does not report them.
func cacheSizes() (l2, l3 int) {
	or := func(n, usual int) int {
		if n > 0 {
			return n
		}
		return usual
	}
	c := cpuid.CPU.Cache
	return or(c.L2, 512<<10), or(c.L3, 8<<20)
}
