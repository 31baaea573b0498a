package profile

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

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
	var b bytes.Buffer
	require.NoError(t, WriteTrace(&b, want, 5))
	got, dropped, err := ReadTrace(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	assert.EqualValues(t, 5, dropped)
	require.Len(t, got, len(want))
	for i := range want {
		e := &want[i]
		e.Name = strings.ToValidUTF8(e.Name, "\uFFFD")
		if e.Name == "" {
			e.Name = e.Kind.String()
		}
		j := slices.IndexFunc(got, func(g Event) bool { return g.Name == e.Name && g.Start == e.Start && g.Stream == e.Stream })
		require.GreaterOrEqual(t, j, 0, "%+v", *e)
		if e.Err != nil {
			assert.EqualError(t, got[j].Err, e.Err.Error())
			got[j].Err = e.Err
		}
		assert.Equal(t, *e, got[j])
	}
	empty, _, err := ReadTrace(strings.NewReader(`{"traceEvents":[]}`))
	require.NoError(t, err)
	assert.Empty(t, empty)
}

// Other files are refused, and so is every part of a trace.
func TestReadTraceRefuses(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteTrace(&b, some()[:3], 0))
	for n := range b.Len() - 1 {
		_, _, err := ReadTrace(bytes.NewReader(b.Bytes()[:n]))
		require.ErrorIs(t, err, driver.ErrInvalidArgument, "%d bytes", n)
	}
	for _, text := range []string{"", "[]", "null", "{", `{"traceEvents":5}`, `{"traceEvents":[{"ph":"B"}]}`, `{"traceEvents":[{"ph":"X","cat":"other"}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","ts":1e300}]}`, `{"traceEvents":[{"ph":"X","cat":"launch","args":{"items":"many"}}]}`,
		`{"traceEvents":[{"ph":"X","cat":"launch","ts":"now"}]}`} {
		_, _, err := ReadTrace(strings.NewReader(text))
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, text)
	}
	_, _, err := ReadTrace(broken{})
	assert.ErrorIs(t, err, errFull)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errFull }

func FuzzReadTrace(f *testing.F) {
	var b bytes.Buffer
	if err := WriteTrace(&b, some(), 1); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		events, _, err := ReadTrace(bytes.NewReader(text))
		if err != nil && events != nil {
			t.Fatal("events and an error")
		}
		if err == nil { // what can be read can be summed up and written
			_ = Summarize(events, 0, nil).String()
			if err := WriteTrace(&b, events, 0); err != nil && !errors.Is(err, errFull) {
				t.Fatal(err)
			}
			b.Reset()
		}
	})
}
