package mempool

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:noinline
func leak(t *testing.T, p *Pool) { get(t, p, 3<<20, nil) }

// go tool pprof shows the profile's bytes at the function that allocated.
func TestWriteProfile(t *testing.T) {
	p := New(&fakeSource{}, Options{Mode: Exact})
	get(t, p, 1<<20, nil) // allocated before tracking was on, so it is not in the profile
	p.Track(true)
	before := liveProfile().Count()
	for range 2 {
		leak(t, p)
	}
	b := get(t, p, 5<<20, nil)
	assert.Equal(t, before+3, pprof.Lookup(ProfileName).Count())
	require.NoError(t, p.Put(b.ID, nil, 0))
	assert.Equal(t, before+2, pprof.Lookup(ProfileName).Count())
	var text bytes.Buffer
	require.NoError(t, pprof.Lookup(ProfileName).WriteTo(&text, 1))
	assert.Contains(t, text.String(), "mempool.leak")

	var out bytes.Buffer
	require.NoError(t, p.WriteProfile(&out))
	file := filepath.Join(t.TempDir(), "memory.pb.gz")
	require.NoError(t, os.WriteFile(file, out.Bytes(), 0o600))
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command")
	}
	top, err := exec.Command(goCommand, "tool", "pprof", "-top", "-cum", file).CombinedOutput()
	require.NoError(t, err, "%s", top)
	assert.Regexp(t, `6MB\s+100%\s+.*mempool\.leak`, string(top))
	raw, err := exec.Command(goCommand, "tool", "pprof", "-raw", file).CombinedOutput()
	require.NoError(t, err)
	assert.Regexp(t, `2\s+6291456:`, string(raw))
	assert.NotContains(t, string(raw), "5242880")
}
