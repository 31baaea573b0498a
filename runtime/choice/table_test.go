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
	t := NewState(choices, "GenuineIntel family 6, avx512", "", func(*Set) {}).New(values)
	t.Made = made
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
	assert.Equal(t, "1 value for GenuineIntel family 6, avx512, 2026-01-31, 2 trials", got.String())
	assert.Equal(t, "2 values for x, 0001-01-01, 1 trial",
		(&Table{For: "x", Values: map[string]int{"a": 1, "b": 2}, Trials: make([]Trial, 1)}).String())
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

// A changed list of choices takes the values of its operation from a table, and no others.
func TestHeld(t *testing.T) {
	list := []*Choice{depth, ahead}
	both := table(map[string]int{"test.gemm.depth": 64, "test.copy.ahead": 1024}, list)
	tried := func(subject, name string, value int) Trial {
		return Trial{Subject: subject, Values: map[string]int{name: value}}
	}
	both.Trials = []Trial{{Subject: "gemm f32"}, tried("gemm f32", "test.gemm.depth", 64),
		tried("copy", "test.copy.ahead", 1024)}
	whole, changed := both.Held(list)
	assert.Same(t, both, whole)
	assert.Empty(t, changed)

	for why, change := range map[string]func(c *Choice){
		"default": func(c *Choice) { c.Default = 64 }, "range": func(c *Choice) { c.Values = []int{64, 256} },
		"kind of range": func(c *Choice) { c.Only = true }, "name": func(c *Choice) { c.Name = "test.gemm.height" },
	} {
		other := *depth
		change(&other)
		now := []*Choice{ahead, &other}
		held, changed := both.Held(now)
		assert.Equal(t, map[string]int{"test.copy.ahead": 1024}, held.Values, why)
		assert.Equal(t, map[string]string{"test.copy": both.Versions["test.copy"]}, held.Versions, why)
		assert.Equal(t, []Trial{both.Trials[0], both.Trials[2]}, held.Trials, why)
		require.Len(t, changed, 1, why)
		assert.Equal(t, "it was made with version "+both.Versions["test.gemm"]+" of the choices for test.gemm, and this is "+
			VersionOf("test.gemm", now), changed[0])
		require.NoError(t, both.Fits(both.For, "", now), why)

		chosen := (*Set)(nil)
		s := NewState(now, both.For, "", func(s *Set) { chosen = s })
		require.NoError(t, s.Use(both), why)
		assert.Equal(t, 1024, chosen.Of(ahead))
		assert.Equal(t, 256, chosen.Of(depth))
		assert.Equal(t, held, s.Table())
	}
	assert.Equal(t, map[string]int{"test.gemm.depth": 64, "test.copy.ahead": 1024}, both.Values, "it is not changed")

	// One more choice of the operation may have made another value the best.
	more := append(list, &Choice{Name: "test.gemm.rows", Values: []int{1}})
	held, _ := both.Held(more)
	assert.NotContains(t, held.Values, "test.gemm.depth")

	unknown := *both
	unknown.Versions = map[string]string{"test.copy": both.Versions["test.copy"]}
	held, changed = unknown.Held(list)
	assert.NotContains(t, held.Values, "test.gemm.depth", "nothing says what it meant")
	assert.Contains(t, changed[0], "version none of the choices for test.gemm")
}

func TestMerged(t *testing.T) {
	list := []*Choice{depth, ahead}
	s := NewState(list, "x", "", func(*Set) {})
	old := s.New(map[string]int{"test.gemm.depth": 64, "test.copy.ahead": 1024})
	old.Trials = []Trial{{Subject: "gemm f32", Values: old.Values}, {Subject: "copy"}}
	next := s.New(map[string]int{"test.gemm.depth": 512})
	next.Trials = []Trial{{Subject: "gemm f32", Values: map[string]int{"test.gemm.depth": 512}}}
	assert.Same(t, next, s.Merged(nil, next))
	assert.Equal(t, next.Values, s.Merged(&Table{For: next.For}, next).Values, "a table without values")
	got := s.Merged(old, next)
	assert.Equal(t, map[string]int{"test.gemm.depth": 512, "test.copy.ahead": 1024}, got.Values)
	assert.Equal(t, []Trial{old.Trials[1], next.Trials[0]}, got.Trials)
	require.NoError(t, s.Check(got))

	// The trials of other sizes stay, if what they were measured with does.
	size := func(name string) []Rate { return []Rate{{name, 1, 2}} }
	usual := Trial{Subject: "gemm f32", Rates: size("64")}
	same := Trial{Subject: "gemm f32", Values: map[string]int{"test.gemm.depth": 512}, Rates: size("64"), Final: true}
	again := Trial{Subject: "gemm f32", Rates: size("128"), Values: same.Values, Final: true}
	other := Trial{Subject: "gemm f32", Values: old.Values, Rates: size("64"), Final: true}
	tried := Trial{Subject: "gemm f32", Values: same.Values, Rates: size("64")}
	known := Trial{Subject: "gemm f32", Rates: size("128")}
	older := Trial{Subject: "gemm f32", Rates: size("64"), Version: "older"}
	old.Trials, next.Trials = []Trial{usual, same, other, tried, known, older}, []Trial{again}
	assert.Equal(t, []Trial{usual, same, again}, s.Merged(old, next).Trials)

	old.Versions["test.copy"] = "0"
	assert.NotContains(t, s.Merged(old, next).Values, "test.copy.ahead", "it does not hold any more")
}

// A reader gets the values and the table of one moment, however often they change meanwhile.
func TestInUse(t *testing.T) {
	s := NewState([]*Choice{depth}, "x", "", func(*Set) {})
	set, of := s.InUse()
	assert.Equal(t, 256, set.Of(depth))
	assert.Nil(t, of)
	list := []*Table{s.New(map[string]int{"test.gemm.depth": 64}), s.New(map[string]int{"test.gemm.depth": 512})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range 2000 {
			assert.NoError(t, s.Use(list[i%2]))
		}
	}()
	for more := true; more; {
		select {
		case <-over:
			more = false
		default:
		}
		if set, of := s.InUse(); of != nil {
			require.Equal(t, of.Values["test.gemm.depth"], set.Of(depth))
		}
	}
}

// The table of an earlier version of Concord is refused with a reason, whatever its values are.
func TestEarlierTable(t *testing.T) {
	_, err := Parse([]byte(`{"for": "x", "choices": "0123456789abcdef", "made": "2026-01-31T12:00:00Z",
		"values": {"test.gemm.depth": 64}}`))
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "made by an earlier version of Concord")
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
