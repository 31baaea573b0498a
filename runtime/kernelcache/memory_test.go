package kernelcache

// Tests of the memory layer's bounds and accounts, and of the cost of a hit.

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMemoryBounds(t *testing.T) {
	c := Open(Options{MemoryEntries: 2})
	for i := range 3 {
		_, _, err := c.Get(t.Context(), key(i), fixed(entry(i)))
		require.NoError(t, err)
		c.Lookup(key(0)) // key 0 stays the most recently used
	}
	for i, want := range []bool{true, false, true} {
		_, ok := c.Lookup(key(i))
		assert.Equal(t, want, ok, "key %d", i)
	}
	assert.EqualValues(t, 1, c.Stats().Evictions)

	c = Open(Options{MemoryBytes: 10_000})
	_, _, err := c.Get(t.Context(), key(0), fixed(entry(0)))
	require.NoError(t, err)
	got, _, err := c.Get(t.Context(), key(1), fixed(Entry{Binary: make([]byte, 20_000)}))
	require.NoError(t, err)
	assert.Len(t, got.Binary, 20_000, "an entry that is too large to keep is still returned")
	_, ok := c.Lookup(key(1))
	assert.False(t, ok)
	_, ok = c.Lookup(key(0))
	assert.True(t, ok, "no other entry is removed for it")

	c = Open(Options{MemoryBytes: -1})
	_, _, err = c.Get(t.Context(), key(0), fixed(entry(0)))
	require.NoError(t, err)
	assert.Zero(t, c.Stats().MemoryEntries)
}

// The bounds hold after any sequence of adds, gets and removes, and the number of bytes is the sum
// over the items.
func TestMemoryAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m memory
		const maxBytes, maxItems = 5000, 6
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := key(rapid.IntRange(0, 9).Draw(t, "key"))
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0:
				m.get(k)
			case 1:
				m.remove(k)
			default:
				size := rapid.IntRange(0, 6000).Draw(t, "size")
				m.add(newItem(k, Entry{Binary: make([]byte, size)}, nil), maxBytes, maxItems)
			}
			sum := int64(0)
			for e := m.order.Front(); e != nil; e = e.Next() {
				sum += e.Value.(*item).size
			}
			require.Equal(t, sum, m.bytes)
			require.LessOrEqual(t, m.bytes, int64(maxBytes))
			require.LessOrEqual(t, m.order.Len(), maxItems)
			require.Equal(t, len(m.items), m.order.Len())
		}
	})
}

func TestLabelIsOnePrintableLine(t *testing.T) {
	for in, want := range map[string]string{
		"cpu:0 mnist.cl l2":            "cpu:0 mnist.cl l2",
		"a\nb\x1b[31mc\x00":            "a b [31mc ",
		string([]byte{'a', 0xff, 'b'}): "a b",
	} {
		assert.Equal(t, want, cleanLabel(in))
	}
	long := cleanLabel(string(bytes.Repeat([]byte("é"), 1000)))
	assert.Len(t, long, maxLabel)
	assert.Equal(t, long, cleanLabel(long))
}

func TestHitNames(t *testing.T) {
	assert.Equal(t, "none memory disk compiled bundle none", fmt.Sprintf("%v %v %v %v %v %v", NoHit, Memory, Disk,
		Compiled, Bundled, Hit(9)))
}

func TestHitAllocatesNothing(t *testing.T) {
	var c Cache
	ctx, compile, k := t.Context(), fixed(entry(1)), key(1)
	_, _, err := c.Get(ctx, k, compile)
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = c.Get(ctx, k, compile) }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.Lookup(k) }))
}

// BenchmarkHit is the cost of a kernel that is in memory, among 1000.
func BenchmarkHit(b *testing.B) {
	c, keys := filled(b)
	ctx, compile := b.Context(), fixed(entry(0))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		_, _, _ = c.Get(ctx, keys[i%len(keys)], compile)
		i++
	}
}

func BenchmarkLookup(b *testing.B) {
	c, keys := filled(b)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		c.Lookup(keys[i%len(keys)])
		i++
	}
}

func BenchmarkHitParallel(b *testing.B) {
	c, keys := filled(b)
	compile := fixed(entry(0))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			_, _, _ = c.Get(b.Context(), keys[i%len(keys)], compile)
		}
	})
}

// BenchmarkKeyOf is the cost of a key over a source of 10 KB.
func BenchmarkKeyOf(b *testing.B) {
	fields := append(ingredients(), F("text", string(make([]byte, 10_000))))
	b.ReportAllocs()
	for b.Loop() {
		KeyOf(fields...)
	}
}

func filled(b *testing.B) (*Cache, []Key) {
	c, keys := new(Cache), make([]Key, DefaultMemoryEntries)
	for i := range keys {
		keys[i] = key(i)
		_, _, err := c.Get(b.Context(), keys[i], fixed(entry(i)))
		require.NoError(b, err)
	}
	return c, keys
}
