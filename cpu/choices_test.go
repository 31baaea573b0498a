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
		rounds, rows := 40, 4
		if brief() {
			rounds = 6
		}
		if d.simd != nil {
			rows = d.simd.rows
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
					if done%4 == 0 {
						s = f.convTrial([]string{"f32", "f64", "f16", "bf16"}[done/4%4], 24, 6)
					}
					if done%4 == 1 {
						s = f.winogradTrial("f32", rows, 9, false)
					}
					if s.n*s.k*s.outs()*s.depth() > 1<<21 && done%4 > 1 {
						continue
					}
					s.run(t, d, f)
					done++
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

// TestChoicesKeepBits computes with other values of the choices that do not round.
func TestChoicesKeepBits(t *testing.T) {
	var cases []kernels.Case
	for _, f := range kernels.Families() {
		cases = append(cases, kernels.Cases(f.ID)...)
	}
	eachSet(t, func(t *testing.T, d *device) {
		r, each := rand.New(rand.NewPCG(5, 5)), 3
		if brief() {
			each = 29
		}
		same := slices.DeleteFunc(d.Choices(), func(c *choice.Choice) bool { return c.Rounds })
		smallCaches(t, r)
		run := func(c *kernels.Case, values map[string]int) [][]byte {
			set, err := choice.NewSet(values)
			require.NoError(t, err)
			d.Choose(set)
			return runCase(t, d, c)
		}
		for k := r.IntN(each); k < len(cases); k += each {
			c := &cases[k]
			if !hasCase(d, c) {
				continue
			}
			usual, values := run(c, nil), anyValues(r, same)
			equal := func(values map[string]int) bool { return slices.EqualFunc(usual, run(c, values), bytes.Equal) }
			if equal(values) {
				continue
			}
			alone := slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(name string) bool {
				return equal(map[string]int{name: values[name]})
			})
			t.Errorf("%s has other bits by %v of %v", c.Name(), alone, values)
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
