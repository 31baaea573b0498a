//go:build cgo && unix

package cgo

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// marksText is a library like NVTX's, which writes what it is told to a file.
const marksText = `
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static void note(const char *what, uint64_t id, const char *name) {
  FILE *f = fopen(getenv("CONCORD_TEST_MARKS"), "a");
  fprintf(f, "%s %llu %s\n", what, (unsigned long long)(id - (1ull << 40)), name);
  fclose(f);
}
static uint64_t last = 1ull << 40; // numbers are of 64 bits
uint64_t beginRange(const char *name) { note("begin", ++last, name); return last; }
void endRange(uint64_t id) { note("end", id, ""); }
`

// Marks reach the first library that has the functions, with their names, and end what they began.
func TestMarks(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	source, library, other, told := filepath.Join(dir, "marks.c"), filepath.Join(dir, "libmarks.so"),
		filepath.Join(dir, "libother.so"), filepath.Join(dir, "told")
	t.Setenv("CONCORD_TEST_MARKS", told)
	require.NoError(t, os.WriteFile(source, []byte(marksText), 0o600))
	for out, define := range map[string]string{library: "-DX", other: "-DbeginRange=otherRange"} {
		text, err := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", define, "-o", out, source).CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	v := vendor()
	v.MarkBegin, v.MarkEnd = "beginRange", "endRange"
	v.Marks = func() []string { return []string{filepath.Join(dir, "libnone.so"), other, library} }
	m := NewBackend(v).(driver.Marker)
	end := m.Mark("outer")
	inner := m.Mark("in\x00ner")
	end()
	var wg sync.WaitGroup
	wg.Go(inner)
	wg.Wait()
	text, err := os.ReadFile(told)
	require.NoError(t, err)
	assert.Equal(t, "begin 1 outer\nbegin 2 in ner\nend 1 \nend 2 \n", string(text))

	v.Marks = func() []string { return []string{other} }
	assert.Nil(t, NewBackend(v).(driver.Marker).Mark("nobody"))
	v.Marks = nil
	assert.Nil(t, NewBackend(v).(driver.Marker).Mark("nobody"))
}
