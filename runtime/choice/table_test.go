package choice

import (
	"bytes"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var made = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func table(values map[string]int, choices []*Choice) *Table {
	t := &Table{For: "GenuineIntel family 6, avx512", Made: made, Values: values}
	t.Choices = t.VersionOf(choices)
	return t
}

func TestTableAsText(t *testing.T) {
	want := table(map[string]int{"test.gemm.depth": 64}, []*Choice{depth})
	want.Driver = "1.2"
	want.Trials = []Trial{{Subject: "gemm f32", Values: map[string]int{"test.gemm.depth": 64}, Score: 1.5,
		Rates: []Rate{{"64", 10, 15}}}, {Subject: "gemm f32", Failed: "it crashed"}}
	var text bytes.Buffer
	require.NoError(t, want.Write(&text))
	got, err := Read(&text)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, "1 values for GenuineIntel family 6, avx512, 2026-01-31, 2 trials", got.String())
	set, err := got.Set()
	require.NoError(t, err)
	assert.Equal(t, 64, set.Of(depth))

	for _, bad := range []string{"", "[]", "{}", `{"for": "x", "choices": "y"}`, `{"for": 1}`, "null",
		`{"choices": "y", "made": "2026-01-31T12:00:00Z"}`, strings.Repeat(" ", mostText+1)} {
		_, err := Read(strings.NewReader(bad))
		require.ErrorIs(t, err, ErrInvalid, "%.60s", bad)
	}
	assert.Error(t, (&Table{Trials: []Trial{{Score: math.NaN()}}}).Write(&text))
}

func TestFits(t *testing.T) {
	list := []*Choice{depth, ahead}
	own := table(map[string]int{"test.gemm.depth": 64}, list)
	require.NoError(t, own.Fits("GenuineIntel family 6, avx512", "9", list))
	require.NoError(t, own.Fits("GenuineIntel family 6, avx512, L2 2048 KiB", "9", list), "it names less")
	for _, other := range []string{"GenuineIntel family 6", "GenuineIntel family 6, avx512f", "", "x"} {
		require.ErrorIs(t, own.Fits(other, "9", list), ErrOther)
	}
	own.Driver = "1"
	require.NoError(t, own.Fits(own.For, "1", list))
	require.ErrorIs(t, own.Fits(own.For, "2", list), ErrOther)

	// What the values mean changes with the choices of the same operation, and with no others.
	own.Driver = ""
	with := func(change func(c *Choice)) []*Choice {
		c := *depth
		change(&c)
		return []*Choice{&c, ahead}
	}
	require.ErrorIs(t, own.Fits(own.For, "", with(func(c *Choice) { c.Default = 64 })), ErrOther)
	require.ErrorIs(t, own.Fits(own.For, "", with(func(c *Choice) { c.Values = []int{64, 256} })), ErrOther)
	require.ErrorIs(t, own.Fits(own.For, "", append(list, &Choice{Name: "test.gemm.rows"})), ErrOther)
	require.ErrorIs(t, own.Fits(own.For, "", nil), ErrOther)
	require.NoError(t, own.Fits(own.For, "", append(list, &Choice{Name: "test.conv.rows"})))
	require.NoError(t, own.Fits(own.For, "", with(func(c *Choice) { c.Doc = "other words" })))
	require.NoError(t, table(nil, list).Fits(own.For, "", nil), "a table of defaults")
}

func TestScore(t *testing.T) {
	assert.Zero(t, Score(nil))
	assert.InDelta(t, 2, Score([]Rate{{"a", 1, 4}, {"b", 2, 2}}), 1e-12)
}

// Every file that is shipped is a table, but for the note.
func TestShipped(t *testing.T) {
	files, err := fs.Glob(tables, "tables/*.json")
	require.NoError(t, err)
	assert.Len(t, Shipped(), len(files))
	for i, s := range Shipped() {
		assert.NotEmpty(t, s.Values)
		if i > 0 {
			assert.False(t, s.Made.After(Shipped()[i-1].Made))
		}
	}
}
