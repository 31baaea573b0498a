package stress

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
)

// TestCheck: what a program gets wrong is an error that names the line, and nothing else is one. tests/stress runs
// the set on every device.
func TestCheck(t *testing.T) {
	d, err := runtime.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	defer d.Close()
	if _, err := d.Driver().(driver.Compiler).Identity(t.Context()); err != nil {
		t.Skip(err)
	}
	const text = `kernel void twice(global int *p, local int *l, short2 v) { int i = get_global_id(0); l[0] = 2; p[i] = p[i] * l[0] + v.y; }
// run: kernel=twice global=3 local=1 args=out:i32:3:5,-7,1,local:4,i16:9,1
// want: 11 -13 3
`
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for what, c := range map[string]struct {
		ctx            context.Context
		old, new, want string
	}{
		"right":        {t.Context(), "", "", ""},
		"result":       {t.Context(), "-13", "-14", `stress: a.cl: line 2: kernel=twice global=3`},
		"text":         {t.Context(), "l[0] + v.y", "l[0] + w.y", "a.cl:1:"},
		"no run":       {t.Context(), "// run:", "// ran:", "no run line"},
		"no kernel":    {t.Context(), "=twice", "=thrice", "thrice"},
		"grid":         {t.Context(), "global=3", "global=3,x", `"x"`},
		"dimensions":   {t.Context(), "global=3", "global=3,1,1,1", "4 dimensions"},
		"arguments":    {t.Context(), ",local:4", "", "2 arguments for 3 parameters"},
		"value":        {t.Context(), "i16:9,1", "i16:9,y", `"y"`},
		"type":         {t.Context(), "i16:9", "short:9", "no known type"},
		"many values":  {t.Context(), "out:i32:3", "out:i32:2", "3 values for 2 elements"},
		"length":       {t.Context(), "out:i32:3", "out:i32:three", `"three"`},
		"cancelled":    {ended, "", "", "context canceled"},
		"more to want": {t.Context(), "3\n", "3\n// want: 1\n", "want "},
	} {
		skip, err := Program{"a", strings.Replace(text, c.old, c.new, 1)}.Check(c.ctx, d)
		assert.Empty(t, skip, what)
		if c.want == "" {
			assert.NoError(t, err, what)
			continue
		}
		assert.ErrorContains(t, err, c.want, what)
	}
	assert.Zero(t, d.Stats().Live)
}
