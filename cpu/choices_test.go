package cpu

// Every value of a choice gives right results, and those without roundings the same bits.

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/cpuid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
)

// anyValues returns values of some of the choices, of which the ends of ranges are as likely as all between.
func anyValues(r *rand.Rand, list []*choice.Choice) map[string]int {
	values := map[string]int{}
	for _, c := range list {
		least, most := c.Values[0], c.Values[len(c.Values)-1]
		switch r.IntN(5) {
		case 0:
			values[c.Name] = least
		case 1:
			values[c.Name] = most
		case 2:
			values[c.Name] = least + r.IntN(most-least+1)
		case 3:
			values[c.Name] = c.Values[r.IntN(len(c.Values))]
		}
	}
	return values
}

// smallCaches makes the caches of the processor seem small until the end of the test, so that small work exceeds them.
func smallCaches(t *testing.T, r *rand.Rand) {
	t.Helper()
	cache := &cpuid.CPU.Cache
	l2, l3 := cache.L2, cache.L3
	t.Cleanup(func() { cache.L2, cache.L3 = l2, l3 })
	cache.L2, cache.L3 = 1<<(13+r.IntN(8)), 1<<(15+r.IntN(8))
}

// hasCase reports whether a device has a function of its own for a case.
func hasCase(d *device, c *kernels.Case) bool {
	u, err := kernels.Unit(c.Family, nil, c.Defines...)
	if err != nil {
		return false
	}
	_, ok := d.Native(u, c.Kernel)
	return ok
}

// TestAnyChoices computes with random values of all choices and caches of random sizes.
func TestAnyChoices(t *testing.T) {
	exact := openIndex(t, referenceIndex)
	var cases []kernels.Case
	for _, f := range kernels.Families() {
		cases = append(cases, kernels.Cases(f.ID)...)
	}
	eachSet(t, func(t *testing.T, d *device) {
		f := newFence(t, 99)
		rounds, rows := 3, 4
		if d.simd != nil {
			rounds, rows = 12, d.simd.rows
		}
		if brief() {
			rounds = 3
		}
		for i := range rounds {
			values := anyValues(f.r, d.Choices())
			set, err := choice.NewSet(values)
			require.NoError(t, err)
			d.Choose(set)
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				smallCaches(t, f.r)
				defer func() {
					if t.Failed() {
						t.Logf("L2 %d, L3 %d, %v", cpuid.CPU.Cache.L2, cpuid.CPU.Cache.L3, values)
					}
				}()
				for j := range 25 {
					g := f.anyGemm(j)
					switch j % 5 {
					case 0:
						g = f.anyFew(j)
					case 1:
						g.m, g.n, g.k = g.m*3, g.n*4, g.k*6
					}
					require.NoError(t, g.run(t, d, f), "%+v", g)
				}
				for done := 0; done < 20; {
					s := f.wildTrial(rows)
					switch done % 5 {
					case 0:
						s = f.convTrial([]string{"f32", "f64", "f16", "bf16"}[done/5%4], 24, 6)
					case 1:
						s = f.winogradTrial("f32", rows, 4, false)
					}
					if s.n*s.k*s.outs()*s.depth() <= 1<<21 || done%5 == 1 {
						s.run(t, d, f)
						done++
					}
				}
				for k := i % 23; k < len(cases); k += 23 {
					if c := &cases[k]; hasCase(d, c) {
						assert.NoError(t, judge(c, runCase(t, exact, c), runCase(t, d, c)), c.Name())
					}
				}
			})
		}
	})
}

// anyWork returns a random product or convolution, which can be computed again and again, and its name.
func (f *fence) anyWork(t *testing.T, d *device, rows int) (work func() [][]byte, name string) {
	t.Helper()
	if f.r.IntN(2) == 0 {
		s := f.wildTrial(rows)
		if f.r.IntN(3) == 0 {
			s = f.winogradTrial("f32", rows, 24, f.r.IntN(2) == 0)
		}
		if s.n*s.k*s.outs()*s.depth() > 1<<25 {
			return f.anyWork(t, d, rows)
		}
		x, weight := f.numbers(s.typ, s.n*s.c*s.h*s.w), f.numbers(s.typ, s.k*s.depth())
		bias, y := f.numbers(s.typ, s.k), f.numbers(s.typ, s.n*s.k*s.outs())
		defines := define("T", s.typ, "BIAS", zeroOne(s.bias), "NHWC", zeroOne(s.last), "CNHW", zeroOne(s.across),
			"SPREAD_H", fmt.Sprint(s.gapH+1), "SPREAD_W", fmt.Sprint(s.gapW+1))
		return func() [][]byte {
			require.NoError(t, invoke(t, d, "conv2d", "conv2d", defines, [3]int{1, 1, 1}, s.args(x, weight, bias, y)...))
			return [][]byte{bytes.Clone(y)}
		}, fmt.Sprintf("%+v", s)
	}
	most := []int{700, 700, 900}
	if i := f.r.IntN(4); i < 2 {
		most[i] = 40
	}
	m, n, k := 1+f.r.IntN(most[0]), 1+f.r.IntN(most[1]), 1+f.r.IntN(most[2])
	typ, across := []string{"f32", "f32", "f64", "f16"}[f.r.IntN(4)], [2]bool{f.r.IntN(2) == 0, f.r.IntN(2) == 0}
	a, b, c := f.numbers(typ, m*k), f.numbers(typ, k*n), f.numbers(typ, m*n)
	ld, one, zero := [2]int{k, n}, any(float32(1)), any(float32(0))
	if across[0] {
		ld[0] = m
	}
	if across[1] {
		ld[1] = k
	}
	if typ == "f64" {
		one, zero = 1., 0.
	}
	defines := define("T", typ, "TRANS_A", zeroOne(across[0]), "TRANS_B", zeroOne(across[1]))
	return func() [][]byte {
		require.NoError(t, invoke(t, d, "gemm", "gemm", defines, [3]int{1, 1, 1}, uint32(m), uint32(n), uint32(k), one, a,
			uint32(ld[0]), b, uint32(ld[1]), zero, c, uint32(n)))
		return [][]byte{bytes.Clone(c)}
	}, fmt.Sprint("gemm ", typ, m, n, k, across)
}

// TestChoicesKeepBits computes with other values of the choices that do not round.
func TestChoicesKeepBits(t *testing.T) {
	var cases []kernels.Case
	for _, f := range kernels.Families() {
		cases = append(cases, kernels.Cases(f.ID)...)
	}
	eachSet(t, func(t *testing.T, d *device) {
		f, every, count, rows := newFence(t, 5), 3, 200, 4
		if brief() || d.simd == nil {
			every, count = 29, 30
		}
		if d.simd != nil {
			rows = d.simd.rows
		}
		same := slices.DeleteFunc(d.Choices(), func(c *choice.Choice) bool { return c.Rounds })
		compare := func(work func() [][]byte, name string) {
			equal := func(usual [][]byte, values map[string]int) bool {
				set, err := choice.NewSet(values)
				require.NoError(t, err)
				d.Choose(set)
				return slices.EqualFunc(usual, work(), bytes.Equal)
			}
			d.Choose(nil)
			usual, values := work(), anyValues(f.r, same)
			if equal(usual, values) {
				return
			}
			alone := slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(name string) bool {
				return equal(usual, map[string]int{name: values[name]})
			})
			t.Errorf("%s has other bits by %v of %v", name, alone, values)
		}
		smallCaches(t, f.r)
		for k := f.r.IntN(every); k < len(cases); k += every {
			if c := &cases[k]; hasCase(d, c) {
				compare(func() [][]byte { return runCase(t, d, c) }, c.Name())
			}
		}
		for range count {
			cpuid.CPU.Cache.L2, cpuid.CPU.Cache.L3 = 1<<(13+f.r.IntN(8)), 1<<(15+f.r.IntN(8))
			compare(f.anyWork(t, d, rows))
			f.free()
		}
	})
}

// TestChoose gives a device other values while it works.
func TestChoose(t *testing.T) {
	d := openThreads(t, 2)
	var tunable driver.Tunable = d
	list := tunable.Choices()
	require.NotEmpty(t, list)
	for _, c := range list {
		assert.True(t, strings.HasPrefix(c.Name, "cpu."), c.Name)
	}
	line := tunable.TunedFor()
	assert.Contains(t, line, ", 2 threads")
	assert.NotContains(t, line, "\n")
	assert.Equal(t, line, openThreads(t, 2).TunedFor())
	assert.NotEqual(t, line, openThreads(t, 1).TunedFor())

	set, err := choice.NewSet(map[string]int{threadRanges.Name: 1})
	require.NoError(t, err)
	parts := func(during func()) (n int) {
		f := func(c *Call) error {
			during()
			n = c.Host.(*call).each(1000, threadRanges)
			return nil
		}
		require.NoError(t, runKernel(t, d, f, launchOf(nil, 1)))
		return n
	}
	assert.Equal(t, 125, parts(func() { d.Choose(set) }), "a launch keeps the values with which it began")
	assert.Equal(t, 500, parts(func() { d.Choose(nil) }))
	assert.Equal(t, 125, parts(func() {}))

	reference := openIndex(t, referenceIndex)
	reference.Choose(set)
	assert.Empty(t, reference.Choices())
	assert.Nil(t, reference.workers.chosen.Load())
}

// Launches that run while choices change are right, too.
func TestChooseMeanwhile(t *testing.T) {
	d := openThreads(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r := rand.New(rand.NewPCG(1, 2))
		for ctx.Err() == nil {
			set, err := choice.NewSet(anyValues(r, d.Choices()))
			assert.NoError(t, err)
			d.Choose(set)
		}
	}()
	f := newFence(t, 77)
	for i := range 50 {
		g := f.anyGemm(i)
		g.m, g.n = 3*g.m, 3*g.n
		require.NoError(t, g.run(t, d, f), "%+v", g)
	}
	cancel()
	<-ended
}

// Reading a choice allocates nothing.
func TestChooseAllocates(t *testing.T) {
	d := openThreads(t, 1)
	set, err := choice.NewSet(nil)
	require.NoError(t, err)
	d.Choose(set)
	c := &call{device: d, chosen: set}
	sum := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() { sum += c.Choose(gemmDepth) + c.share(gemmPanel, 1<<20) }))
	assert.Positive(t, sum)
}

func BenchmarkChoose(b *testing.B) {
	set, err := choice.NewSet(nil)
	require.NoError(b, err)
	c, sum := &call{chosen: set}, 0
	for b.Loop() {
		sum += c.Choose(gemmDepth)
	}
	require.Positive(b, sum)
}

// TestShippedTables catches a table whose choices have changed since it was measured: no device would use it.
func TestShippedTables(t *testing.T) {
	list := openThreads(t, 1).Choices()
	for _, table := range choice.Shipped() {
		for of, version := range table.Versions {
			if strings.HasPrefix(of, "cpu.") {
				assert.Equal(t, choice.VersionOf(of, list), version, "%s of %s, made %s", of, table.For, table.Made)
			}
		}
		for name, value := range table.Values {
			if strings.HasPrefix(name, "cpu.") {
				_, err := choice.NewSet(map[string]int{name: value})
				assert.NoError(t, err)
			}
		}
	}
}
