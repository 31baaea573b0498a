// Package compilers compiles the catalog and the stress set with the vendors' real compilers, which
// need no GPU: NVRTC for NVIDIA's architectures, hipRTC for AMD's.
package compilers

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/concord-compute/concord/kernels"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// vendors are the backends whose compilers are tested, with their targets. Every test run uses few;
// `make test-compilers` uses must and late. late are architectures that are newer than the
// compilers that it installs; a compiler that does not know them skips them.
var vendors = []struct {
	backend         string
	few, must, late []string
}{
	{"cuda", []string{"sm_80"}, []string{"sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90"},
		[]string{"sm_100", "sm_120"}},
	{"rocm", []string{"gfx90a"}, []string{"gfx906", "gfx90a", "gfx1030"}, []string{"gfx942", "gfx1100"}},
}

// variable selects how much is compiled. Without it the tests compile the first program of each
// family for few targets, and skip a vendor whose compiler is not installed. With "turns" they use
// every program and every target, but compile each program for one target of each vendor only; with
// "all" every program for every target.
const variable = "COMPILERS"

// turn is the index of a target among those of a vendor, and their number.
type turn struct {
	target string
	i, of  int
}

// takes reports whether the program n of a list is compiled for this target.
func (u turn) takes(n int) bool { return os.Getenv(variable) != "turns" || n%u.of == u.i }

// compilers runs f for each vendor whose compiler is installed.
func compilers(t *testing.T, f func(t *testing.T, c driver.CrossCompiler, cfg *driver.Config, u turn)) {
	cfg, err := config.ParseEnv(os.Environ())
	require.NoError(t, err)
	for _, v := range vendors {
		t.Run(v.backend, func(t *testing.T) {
			b := sim.Registered(t, v.backend)
			c, ok := b.(driver.CrossCompiler)
			if !ok {
				t.Skip(b.Probe(t.Context(), &cfg).Reason)
			}
			known, err := c.Targets(t.Context(), &cfg)
			if errors.Is(err, driver.ErrUnsupported) && os.Getenv(variable) == "" {
				t.Skip(err)
			}
			require.NoError(t, err)
			targets := v.few
			switch how := os.Getenv(variable); how {
			case "":
			case "turns", "all":
				targets = v.must
				for _, target := range v.late {
					if slices.Contains(known, target) {
						targets = append(slices.Clip(targets), target)
					} else {
						t.Logf("%s is left out: this compiler does not know it", target)
					}
				}
			default:
				t.Fatalf("%s=%s is neither turns nor all", variable, how)
			}
			for i, target := range targets {
				t.Run(target, func(t *testing.T) {
					if !slices.Contains(known, target) {
						words := target + " is not among what this compiler knows: " + strings.Join(known, " ")
						if os.Getenv(variable) != "" {
							t.Fatal(words)
						}
						t.Skip(words)
					}
					f(t, c, &cfg, turn{target, i, len(targets)})
				})
			}
		})
	}
}

// capability returns the number of an architecture of NVIDIA's, 100 for sm_100, and 0 for others.
func capability(target string) int {
	number, _ := strings.CutPrefix(target, "sm_")
	n, _ := strconv.Atoi(strings.TrimRight(number, "af")) // sm_90a, sm_100f
	return n
}

// TestCatalog compiles every kernel of the catalog for every target. The compiler's report gives
// the registers of each kernel; from sm_80 on none may spill.
func TestCatalog(t *testing.T) {
	compilers(t, func(t *testing.T, c driver.CrossCompiler, cfg *driver.Config, u turn) {
		var programs, entries, told atomic.Int64
		var g errgroup.Group
		g.SetLimit(goruntime.NumCPU())
		features := c.TargetFeatures(u.target)
		for n, p := range catalog() {
			if !u.takes(n) {
				continue
			}
			g.Go(func() error {
				name := fmt.Sprint(p.family, p.defines)
				unit, err := kernels.Unit(p.family, &features, p.defines...)
				if !assert.NoError(t, err, name) {
					return nil
				}
				built, err := c.CompileFor(t.Context(), cfg, u.target, unit, nil)
				if !assert.NoError(t, err, name) {
					return nil
				}
				programs.Add(1)
				assert.Len(t, built.Kernels, len(unit.Kernels()), name)
				for _, k := range built.Kernels {
					entries.Add(1)
					if k.Registers > 0 {
						told.Add(1)
					}
					// Occupancy has limits for every architecture that is compiled for, and every kernel fits.
					if l, err := profile.LimitsOf(u.target, k.GroupMultiple); assert.NoError(t, err) {
						_, err := profile.BestGroup(l, profile.Request{Registers: k.Registers, Local: k.LocalBytes, MaxGroup: k.MaxGroup},
							0)
						assert.NoError(t, err, "%s: %s", name, k.Name)
					}
					assert.LessOrEqual(t, k.LocalBytes, int64(32<<10), "%s: %s: OpenCL devices and Metal's have at least 32 KiB of "+
						"local memory", name, k.Name)
					if capability(u.target) >= 80 {
						assert.Zero(t, k.SpillBytes, "%s: %s spills", name, k.Name)
					}
				}
				return nil
			})
		}
		_ = g.Wait()
		t.Logf("%s: %d programs, %d kernels, registers known of %d", u.target, programs.Load(), entries.Load(), told.Load())
		assert.NotZero(t, programs.Load())
		if told.Load() == 0 && os.Getenv(variable) == "" {
			t.Skip("no compiler here tells what a kernel needs")
		}
		assert.Equal(t, entries.Load(), told.Load(), "the compiler's report has every kernel")
	})
}

// program is one program of a family, for one set of definitions.
type program struct {
	family  string
	defines []source.Define
}

// catalog lists the programs of all families, in their order. Without the variable it
// lists the first of each: the others differ in their types.
func catalog() []program {
	var list []program
	for _, f := range kernels.Families() {
		seen := map[string]bool{}
		for _, c := range kernels.Cases(f.ID) {
			key := fmt.Sprint(c.Defines)
			if seen[key] || len(seen) > 0 && os.Getenv(variable) == "" {
				continue
			}
			seen[key] = true
			list = append(list, program{f.ID, c.Defines})
		}
	}
	return list
}

// TestStress compiles the stress set.
func TestStress(t *testing.T) {
	if os.Getenv(variable) == "" {
		t.Skip("slow: " + variable + " is not set")
	}
	files, err := filepath.Glob("../../internal/verify/stress/programs/*.cl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	compilers(t, func(t *testing.T, c driver.CrossCompiler, cfg *driver.Config, u turn) {
		features := c.TargetFeatures(u.target)
		var g errgroup.Group
		g.SetLimit(goruntime.NumCPU())
		for n, file := range files {
			if !u.takes(n) {
				continue
			}
			g.Go(func() error {
				text, err := os.ReadFile(file)
				if !assert.NoError(t, err) {
					return nil
				}
				unit, err := source.Parse(string(text), source.Options{Name: filepath.Base(file), Features: &features})
				if assert.NoError(t, err) {
					_, err = c.CompileFor(t.Context(), cfg, u.target, unit, nil)
					assert.NoError(t, err, file)
				}
				return nil
			})
		}
		_ = g.Wait()
	})
}

// TestMistakes: errors say what is wrong, and the process goes on. hipRTC itself would end the
// process for a target that it does not know.
func TestMistakes(t *testing.T) {
	compilers(t, func(t *testing.T, c driver.CrossCompiler, cfg *driver.Config, u turn) {
		features := c.TargetFeatures(u.target)
		unit, err := kernels.Unit("saxpy", &features)
		require.NoError(t, err)
		for _, wrong := range []string{"", "sm_1", "sm_999", "gfx1", "gfx942x", "gfx9999", "native", u.target + " ",
			u.target + "\x00", "--help"} {
			_, err := c.CompileFor(t.Context(), cfg, wrong, unit, nil)
			assert.ErrorIs(t, err, driver.ErrInvalidArgument, "%q", wrong)
		}
		_, err = c.CompileFor(t.Context(), cfg, u.target, unit, []string{"--no-such-option"})
		assert.ErrorIs(t, err, driver.ErrInvalidArgument)
	})
}

// TestNative compiles texts in the vendors' own languages.
func TestNative(t *testing.T) {
	compilers(t, func(t *testing.T, c driver.CrossCompiler, cfg *driver.Config, u turn) {
		target := source.CUDA
		if strings.HasPrefix(u.target, "gfx") {
			target = source.HIP
		}
		out, err := c.CompileFor(t.Context(), cfg, u.target, sim.NativeUnit(t, target, c.TargetFeatures(u.target), false),
			nil)
		require.NoError(t, err)
		require.Len(t, out.Kernels, 1)
		assert.Equal(t, "turn", out.Kernels[0].Name)
		_, err = c.CompileFor(t.Context(), cfg, u.target, sim.NativeUnit(t, target, c.TargetFeatures(u.target), true), nil)
		build := (*driver.BuildError)(nil)
		require.ErrorAs(t, err, &build)
		assert.Regexp(t, `turn\.native[:(]2`, build.Log)
		assert.NotContains(t, build.Log, "turn.cl")
		mangled, err := source.Parse("kernel void one(global float *x);", source.Options{Name: "one.cl",
			Native: map[source.Target]source.File{
				target: {Name: "one.native", Text: "__global__ void one(float *x) { *x = 1; }"}}})
		require.NoError(t, err)
		_, err = c.CompileFor(t.Context(), cfg, u.target, mangled, nil)
		assert.ErrorIs(t, err, driver.ErrNoKernel)
		assert.ErrorContains(t, err, `is it extern "C" __global__?`)
	})
}

// TestByteDots compiles the dot products of bytes, which are instructions where the architecture has them.
func TestByteDots(t *testing.T) {
	const text = `kernel void k(global uint *x, int acc) {
  size_t i = get_global_id(0);
  x[i] = dot_4x8packed_uu_uint(x[i], x[i + 1]) + dot_4x8packed_ss_int(x[i], x[i + 2]) + dot_acc_sat_4x8packed_su_int(x[i], x[i + 3], acc) +
         dot_acc_sat(as_uchar4(x[i]), as_char4(x[i + 4]), acc) + dot(as_char4(x[i]), as_char4(x[i + 5]));
}`
	compilers(t, func(t *testing.T, c driver.CrossCompiler, cfg *driver.Config, u turn) {
		features := c.TargetFeatures(u.target)
		unit, err := source.Parse(text, source.Options{Features: &features})
		require.NoError(t, err)
		out, err := c.CompileFor(t.Context(), cfg, u.target, unit, nil)
		require.NoError(t, err)
		assert.NotEmpty(t, out.Code)
	})
}

// dotWords have, of an architecture, the length of an instruction in bytes and a mask and the value of the
// first word of one that adds a dot product of bytes with signs: IDP, V_DOT4_I32_I8, or V_DOT4C_I32_I8.
var dotWords = map[string]struct {
	length      int
	mask, value uint32
}{
	"sm_70": {16, 0xfff, 0x226}, "sm_75": {16, 0xfff, 0x226}, "sm_80": {16, 0xfff, 0x226}, "sm_86": {16, 0xfff, 0x226},
	"sm_89": {16, 0xfff, 0x226}, "sm_90": {16, 0xfff, 0x226},
	"gfx906": {4, 0xffff << 16, 0xd3a8 << 16}, "gfx90a": {4, 0x7f << 25, 0x39 << 25},
	"gfx1030": {4, 0x7f << 25, 0x0d << 25},
}

// TestQuantizedProducts counts the instructions for dot products of bytes in the machine code of products with
// quantized weights: each that the kernels have.
func TestQuantizedProducts(t *testing.T) {
	compilers(t, func(t *testing.T, c driver.CrossCompiler, cfg *driver.Config, u turn) {
		words, ok := dotWords[u.target]
		if !ok {
			t.Skip("no instruction of this architecture is listed")
		}
		features := c.TargetFeatures(u.target)
		for _, p := range []struct {
			family, bits string
			dots         int
		}{{"w2a8", "", 64}, {"gemm_q", "8", 32}, {"gemm_q", "4", 32}, {"gemm_q", "6", 32}} {
			var defines []source.Define
			if p.bits != "" {
				defines = []source.Define{{Name: "BITS", Value: p.bits}}
			}
			unit, err := kernels.Unit(p.family, &features, defines...)
			require.NoError(t, err)
			out, err := c.CompileFor(t.Context(), cfg, u.target, unit, nil)
			require.NoError(t, err)
			binary.LittleEndian.PutUint32(out.Code[20:], uint32(elf.EV_CURRENT)) // NVIDIA's is another
			program, err := elf.NewFile(bytes.NewReader(out.Code))
			require.NoError(t, err)
			n := 0
			for _, s := range program.Sections {
				if s.Flags&elf.SHF_EXECINSTR == 0 {
					continue
				}
				code, err := s.Data()
				require.NoError(t, err)
				for ; len(code) >= words.length; code = code[words.length:] {
					if binary.LittleEndian.Uint32(code)&words.mask == words.value {
						n++
					}
				}
			}
			assert.GreaterOrEqual(t, n, p.dots, "%s %s", p.family, p.bits)
		}
	})
}
