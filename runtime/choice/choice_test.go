package choice

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	depth = New(Choice{Name: "test.gemm.depth", Doc: "rows at a time", Why: "measured", Default: 256,
		Values: []int{64, 256, 512}, Rounds: true})
	_     = New(Choice{Name: "test.sides", Doc: "n", Why: "w", Default: 8, Values: []int{4, 8, 16}, Only: true})
	ahead = New(Choice{Name: "test.copy.ahead", Doc: "bytes", Why: "measured", Values: []int{0, 1024}})
)

func TestSet(t *testing.T) {
	var none *Set
	assert.Equal(t, 256, none.Of(depth))
	assert.Equal(t, 0, none.Of(ahead))
	assert.Empty(t, none.Changed())

	s, err := NewSet(map[string]int{"test.gemm.depth": 100})
	require.NoError(t, err)
	assert.Equal(t, 100, s.Of(depth))
	assert.Equal(t, 0, s.Of(ahead))
	assert.Equal(t, map[string]int{"test.gemm.depth": 100}, s.Changed())
	assert.Equal(t, 7, s.Of(&Choice{Default: 7}), "not registered")

	for name, bad := range map[string]map[string]int{
		`no choice is named "test.gemm"`:             {"test.gemm": 1},
		"test.gemm.depth is 63, and not 64 to 512":   {"test.gemm.depth": 63},
		"test.gemm.depth is 513, and not 64 to 512":  {"test.gemm.depth": 513, "test.copy.ahead": 1},
		"test.copy.ahead is -1, and not 0 to 1024":   {"test.copy.ahead": -1},
		`no choice is named ""`:                      {"": 0},
		"test.sides is 5, and not one of [4 8 16]":   {"test.sides": 5},
		`no choice is named "test.gemm.depth.other"`: {"test.gemm.depth.other": 64},
	} {
		_, err := NewSet(bad)
		require.ErrorIs(t, err, ErrInvalid)
		assert.ErrorContains(t, err, name)
	}
}

func TestRegister(t *testing.T) {
	ok := Choice{Name: "test.a", Doc: "d", Why: "w", Default: 1, Values: []int{1, 2}}
	for why, change := range map[string]func(c *Choice){
		"has no name":             func(c *Choice) { c.Name = "Depth" },
		"is registered twice":     func(c *Choice) { c.Name = depth.Name },
		"needs a meaning":         func(c *Choice) { c.Why = "" },
		"not ascending":           func(c *Choice) { c.Values = []int{1, 1, 2} },
		"not among its values":    func(c *Choice) { c.Default = 3 },
		"a default that is not":   func(c *Choice) { c.Values = nil },
		"has values that are not": func(c *Choice) { c.Values = []int{2, 1} },
	} {
		c := ok
		change(&c)
		func() {
			defer func() { assert.Contains(t, recover(), why) }()
			New(c)
		}()
	}
	_, found := find("test.a")
	assert.False(t, found, "a refused choice is not registered")
}

func find(name string) (*Choice, bool) {
	for _, c := range All() {
		if c.Name == name {
			return c, true
		}
	}
	return nil, false
}

func TestLists(t *testing.T) {
	assert.Equal(t, []*Choice{depth}, Of("test.gemm"))
	assert.Equal(t, []*Choice{depth}, Of("test.gemm.depth", "test.none"))
	assert.Empty(t, Of("test.gem"))
	assert.Equal(t, "test.gemm.depth = 256 (64 to 512)", depth.String())
}

func TestAtOnce(t *testing.T) {
	var all sync.WaitGroup
	many := fmt.Sprintf("test.many%d.", len(All())) // other names in every round of the test
	for i := range 32 {
		all.Go(func() {
			New(Choice{Name: many + strings.Repeat("x", i+1), Doc: "d", Why: "w", Values: []int{0}})
			s, err := NewSet(map[string]int{"test.gemm.depth": 64})
			assert.NoError(t, err)
			assert.Equal(t, 64, s.Of(depth))
		})
	}
	all.Wait()
	assert.Len(t, Of(strings.TrimSuffix(many, ".")), 32)
}
