//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withPeer returns a bench whose peers are a shell script, which gets requests in $line.
func withPeer(t *testing.T, script string) *bench {
	path := filepath.Join(t.TempDir(), "python3")
	text := "#!/bin/sh\nn=0\nwhile read -r line; do\nn=$((n+1))\n" + script + "\ndone\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	b := &bench{ctx: t.Context(), suite: "stream", quiet: true, threads: 1, interpreter: path,
		pythons:  map[string]*python{},
		features: "amd64 avx2 fma3 avx512f avx512dq avx512bw avx512vl"}
	t.Cleanup(b.stopPythons)
	return b
}

const answers = `case "$line" in *'"run"'*) echo '{"ns": 1000}';; *) echo '{"note": "fake"}';; esac`

func ours() subject {
	return subject{what: "one", work: 1, unit: gbps, name: "go", run: func() error {
		time.Sleep(10 * time.Microsecond)
		return nil
	}}
}

// only compares ours with a peer and returns the peer's result.
func only(t *testing.T, b *bench) versus {
	c, err := b.peer("torch", nil, "add")
	require.NoError(t, err)
	require.NoError(t, b.compare(ours(), c))
	require.Len(t, b.rows, 1)
	assert.Positive(t, float64(b.rows[0].Ours.Median), "ours is measured")
	return b.rows[0].Peers[0]
}

func TestPeer(t *testing.T) {
	v := only(t, withPeer(t, answers))
	assert.Empty(t, v.Missing)
	assert.Positive(t, float64(v.Ratio))
	assert.Equal(t, "fake, ATEN_CPU_CAPABILITY=avx2", v.Setting)
}

// A setting that crashes the peer is left out; the others are tried.
func TestPeerDiesOfASetting(t *testing.T) {
	v := only(t, withPeer(t, `if [ "$ATEN_CPU_CAPABILITY" = avx2 ]; then kill -ILL $$; fi
`+answers))
	assert.Empty(t, v.Missing)
	assert.Equal(t, "fake, ATEN_CPU_CAPABILITY=avx512", v.Setting)
}

// A peer that dies is reported with the reason, whenever it dies.
func TestPeerDies(t *testing.T) {
	for name, tc := range map[string]struct{ script, says string }{
		"at once":            {"kill -ILL $$", "ATEN_CPU_CAPABILITY=avx512 died: signal: illegal instruction"},
		"by itself":          {"exit 7", "died: exit status 7"},
		"without a reason":   {"exit 0", "EOF"},
		"when it is run":     {`case "$line" in *'"run"'*) kill -KILL $$;; esac; ` + answers, "died: signal: killed"},
		"while it is timed":  {`if [ $n -gt 10 ]; then kill -SEGV $$; fi; ` + answers, "died: signal: segmentation fault"},
		"it fails":           {`echo '{"error": "RuntimeError: no"}'`, "python: RuntimeError: no"},
		"it answers badly":   {"echo hello", "invalid character"},
		"it is missing":      {`echo '{"missing": "python3-torch"}'`, "apt-get install python3-torch"},
		"it answers no more": {`if [ $n -gt 10 ]; then exec >&-; exec sleep 100; fi; ` + answers, "died"},
	} {
		t.Run(name, func(t *testing.T) {
			v := only(t, withPeer(t, tc.script))
			assert.Contains(t, v.Missing, tc.says)
			assert.True(t, strings.HasPrefix(v.Ratio.String(), "-"))
		})
	}
	t.Run("no interpreter", func(t *testing.T) {
		b := withPeer(t, answers)
		b.interpreter = "/nowhere/python3"
		assert.Equal(t, "apt-get install python3", only(t, b).Missing)
	})
}

// Errors of ours, and a context that is done, do not count as errors of a peer.
func TestOursFails(t *testing.T) {
	b := withPeer(t, answers)
	s := ours()
	s.run = func() error { return os.ErrInvalid }
	require.ErrorIs(t, b.compare(s), os.ErrInvalid)
	ctx, cancel := context.WithCancel(t.Context())
	b = withPeer(t, `if [ $n -gt 10 ]; then exec sleep 100; fi; `+answers)
	b.ctx = ctx
	time.AfterFunc(500*time.Millisecond, cancel)
	c, err := b.peer("torch", nil, "add")
	if err == nil {
		err = b.compare(ours(), c)
	}
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, b.rows)
}
