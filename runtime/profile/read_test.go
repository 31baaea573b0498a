package profile

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What was written is read as it was, from the first start on.
func TestReadTrace(t *testing.T) {
	var want []Event
	for _, e := range some() {
		if e.Kind < kinds && e.End >= e.Start && (e.hasWork() || e.Flops == 0 && e.Bytes == 0) {
			want = append(want, e)
		}
	}
	require.Greater(t, len(want), 8)
	roofs := map[string]Roof{
		"cuda:0": {MemoryGBs: 12.5, GFLOPS: 1e3, LaunchNs: 5, Measured: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		"<\x1b>": {}}
	var b bytes.Buffer
	require.NoError(t, WriteTrace(&b, Trace{Events: want, Dropped: 5, Roofs: roofs}))
	trace, err := ReadTrace(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	got := trace.Events
	assert.EqualValues(t, 5, trace.Dropped)
	assert.Equal(t, roofs, trace.Roofs)
	require.Len(t, got, len(want))
	for i := range want {
		e := &want[i]
		e.Name = strings.ToValidUTF8(e.Name, "\uFFFD")
		if e.Name == "" {
			e.Name = e.Kind.String()
		}
		j := slices.IndexFunc(got, func(g Event) bool {
			return g.Name == e.Name && g.Start == e.Start && g.Stream == e.Stream
		})
		require.GreaterOrEqual(t, j, 0, "%+v", *e)
		if e.Err != nil {
			assert.EqualError(t, got[j].Err, e.Err.Error())
			got[j].Err = e.Err
		}
		assert.Equal(t, *e, got[j])
	}
	empty, err := ReadTrace(strings.NewReader(`{"traceEvents":[]}`))
	require.NoError(t, err)
	assert.Equal(t, Trace{}, empty)
}

// Other files are refused, and so is every part of a trace.
func TestReadTraceRefuses(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteTrace(&b, Trace{Events: some()[:3]}))
	for n := range b.Len() - 1 {
		_, err := ReadTrace(bytes.NewReader(b.Bytes()[:n]))
		require.ErrorIs(t, err, driver.ErrInvalidArgument, "%d bytes", n)
	}
	for _, text := range []string{"", "[]", "null", "{", `{"traceEvents":5}`, `{"traceEvents":[{"ph":"B"}]}`,
		`{"traceEvents":[{"ph":"X","cat":"other"}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","ts":1e300}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","args":{"items":"many"}}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","ts":"now"}]}`, `{"traceEvents":[{"ph":"X","cat":"launch","dur":-1}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","args":{"queued_us":1e300}}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","args":{"queued_us":-1}}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","args":{"items":"1x2x3x4"}}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","args":{"items":"1x-2x3"}}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","args":{"items":"1x2x99999999999999999999"}}]}`,
		`{"otherData":{"roofs":5}}`,
		`{"otherData":{"roofs":{"cpu:0":{"measured":"\u001b"}}}}`, `"\u001b[2J"`, `{"traceEvents":"\u001b"}`,
		`{"traceEvents":[{"name":"\u001b"}]}`} {
		_, err := ReadTrace(strings.NewReader(text))
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, text)
		assert.NotContains(t, err.Error(), "\x1b", "it is shown on a terminal")
	}
	long := strings.Repeat(`{"ph":"X","cat":"launch","dur":1.1e15},`, 9)
	_, err := ReadTrace(strings.NewReader(`{"traceEvents":[` + strings.TrimSuffix(long, ",") + `]}`))
	assert.ErrorIs(t, err, driver.ErrInvalidArgument, "sums of its times are no numbers of nanoseconds")
	_, err = ReadTrace(broken{})
	assert.ErrorIs(t, err, errFull)
}

// Names in a file of another user's do nothing to a terminal.
func TestSummaryOfHostileNames(t *testing.T) {
	e := Event{Name: "\x1b[2J\r\nab\u202e", Device: "\x1b]0;x\a", End: 10}
	text := Summarize(Trace{Events: []Event{e}}).String()
	assert.NotContains(t, text, "\x1b")
	assert.NotContains(t, text, "\r")
	assert.NotContains(t, text, "\u202e")
	assert.Contains(t, text, "ab")
	assert.Equal(t, 4, strings.Count(text, "\n"), text)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errFull }

func FuzzReadTrace(f *testing.F) {
	var b bytes.Buffer
	if err := WriteTrace(&b, Trace{Events: some(), Dropped: 1}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		trace, err := ReadTrace(bytes.NewReader(text))
		events := trace.Events
		if err != nil && events != nil {
			t.Fatal("events and an error")
		}
		if err == nil { // what can be read can be summed up and written
			_ = Summarize(trace).String()
			if err := WriteTrace(&b, Trace{Events: events}); err != nil && !errors.Is(err, errFull) {
				t.Fatal(err)
			}
			b.Reset()
		}
	})
}
