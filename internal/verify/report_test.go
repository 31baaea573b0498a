package verify

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/verify/rates"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// TestKind: a report of a device that is simulated, fake or a processor says so, in every form, and never that it is a
// card.
func TestKind(t *testing.T) {
	for _, c := range []struct {
		info runtime.Info
		want string
	}{
		{runtime.Info{Kind: driver.Discrete}, "discrete device"},
		{runtime.Info{Kind: driver.Discrete, Simulated: true}, "SIMULATED, NOT A CARD"},
		{runtime.Info{Kind: driver.Discrete, Fake: true}, "FAKE, NOT A CARD"},
		{runtime.Info{Kind: driver.CPU}, "a processor, not a card"},
	} {
		r := Report{Device: "cuda:0", About: &About{Info: c.info}, Steps: []Result{{Step: "one", State: Done, Passed: 1}}}
		assert.Equal(t, c.want, r.Kind())
		var text, page bytes.Buffer
		require.NoError(t, r.writeMarkdown(&text))
		require.NoError(t, r.writeHTML(&page))
		assert.True(t, strings.HasPrefix(text.String(), "# concord verify cuda:0: "+c.want+"\n"))
		assert.Contains(t, page.String(), c.want)
	}
	assert.Equal(t, "NOT OPENED", (&Report{}).Kind())
}

// TestVerdicts: what was not shown never reads as passed, and OK needs something that was.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		r      Result
		want   string
		ok     bool
		repeat bool
	}{
		{Result{State: Done, Passed: 3}, "passed", true, false},
		{Result{State: Done, Rates: []rates.Rate{{Median: 1}}}, "passed", true, false},
		{Result{State: Done, Rates: []rates.Rate{{Reason: "no compiler"}}}, "nothing shown", false, false},
		{Result{State: Done}, "nothing shown", false, false},
		{Result{State: Done, Skipped: 5}, "nothing shown", false, false},
		{Result{State: Done, Passed: 3, Failed: 1}, "FAILED", false, true},
		{Result{State: Done, Passed: 3, Endings: make([]Ending, 1)}, "FAILED", false, true},
		{Result{State: Cut, Passed: 3}, "cut off", true, true},
		{Result{State: Cut, Passed: 3, Failed: 1}, "FAILED", false, true},
		{Result{State: Hung, Passed: 3}, "hung", false, true},
		{Result{State: Crashed, Passed: 3}, "crashed", false, true},
		{Result{State: Lost, Passed: 3}, "device lost", false, true},
		{Result{State: Broken}, "broken", false, true},
		{Result{State: Absent}, "not here", false, false},
		{Result{State: NotRun}, "not run", false, true},
		{Result{State: NoDevice}, "no device", false, true},
	} {
		r := Report{Steps: []Result{c.r}}
		r.settle()
		assert.Equal(t, c.want, c.r.Verdict())
		assert.Equal(t, c.ok, r.OK, c.want)
		assert.Equal(t, c.repeat, c.r.Open(), c.want)
		r.Steps = append(r.Steps, Result{State: Done, Passed: 1})
		r.settle()
		assert.Equal(t, c.ok || c.want == "nothing shown" || c.want == "not here", r.OK, c.want)
	}
}

// TestHostile: what a driver says changes neither the page nor the tables.
func TestHostile(t *testing.T) {
	r := Report{Device: "<b>", About: &About{Info: runtime.Info{Name: "a | b\n<script>"}, System: "s"},
		Started: time.Now(), Steps: []Result{{
			Step: "one", Title: "t", State: Done, Failed: 1,
			Failures: []Check{{Name: "</pre><script>alert(1)</script>", Reason: strings.Repeat("long ", 10_000)}},
			Endings:  []Ending{{Crashed, "x|y", "bad \xff bytes"}}, Facts: []Fact{{"f|g", "1\n2"}},
			Rates: []rates.Rate{{Name: "r|s", Unit: "µs", Median: 4, Roof: 2, PeerMedian: 8}},
		}}}
	var text, page, doc bytes.Buffer
	require.NoError(t, r.writeMarkdown(&text))
	require.NoError(t, r.writeHTML(&page))
	require.NoError(t, r.writeJSON(&doc))
	assert.NotContains(t, page.String(), "<script>")
	assert.Contains(t, text.String(), `a \| b <script>, `)
	assert.Contains(t, text.String(), `| f\|g | 1 2 |`)
	assert.Contains(t, text.String(), "| 0.50 |", "of the limit: less is better")
	assert.Contains(t, text.String(), "| 2.00 |", "beside the peer")
	assert.Less(t, text.Len(), 10_000)
	var back Report
	require.NoError(t, json.Unmarshal(doc.Bytes(), &back))
	assert.Equal(t, r.Steps[0].Rates, back.Steps[0].Rates)
}

func TestClipped(t *testing.T) {
	c := clipped{most: 100}
	for i := range 1000 {
		c.add([]byte{byte(i % 251), '\n'})
	}
	all := string(c.bytes())
	assert.LessOrEqual(t, len(all), 170)
	assert.True(t, strings.HasPrefix(all, "\x00\n\x01\n\x02\n"))
	assert.True(t, strings.HasSuffix(all, string([]byte{999 % 251, '\n'})))
	assert.Contains(t, all, "[...]")
	small := clipped{most: 100}
	small.add([]byte("one"))
	small.add([]byte("two"))
	assert.Equal(t, "onetwo", string(small.bytes()))
	assert.Equal(t, "onetwo", string(small.end()))
}

func TestShorten(t *testing.T) {
	assert.Equal(t, "abc", shorten("abc", 3))
	long := shorten(strings.Repeat("é", 1000), 101)
	assert.LessOrEqual(t, len(long), 105)
	assert.Contains(t, long, "[...]")
}
