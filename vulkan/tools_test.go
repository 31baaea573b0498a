package vulkan

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTools: the modules in tools.h are those that glslangValidator makes of their sources. The first words differ from
// version to version.
func TestTools(t *testing.T) {
	if _, err := exec.LookPath("glslangValidator"); err != nil {
		t.Skip("no glslangValidator (Debian: glslang-tools)")
	}
	text, err := os.ReadFile("../csrc/vulkan/tools.h")
	require.NoError(t, err)
	arrays := regexp.MustCompile(`(?s)(\w+)_words\[\] = \{(.*?)\}`).FindAllStringSubmatch(string(text), -1)
	sources, err := filepath.Glob("../csrc/vulkan/tools/*.comp")
	require.NoError(t, err)
	require.Len(t, arrays, len(sources))
	for _, a := range arrays {
		module := filepath.Join(t.TempDir(), a[1]+".spv")
		out, err := exec.CommandContext(t.Context(), "glslangValidator", "-V", "-g0", "--target-env", "vulkan1.3",
			"-o", module, "../csrc/vulkan/tools/"+a[1]+".comp").CombinedOutput()
		require.NoError(t, err, "%s", out)
		data, err := os.ReadFile(module)
		require.NoError(t, err)
		var want, got []uint32
		for at := 0; at < len(data); at += 4 {
			want = append(want, binary.LittleEndian.Uint32(data[at:]))
		}
		for _, word := range strings.Fields(strings.ReplaceAll(a[2], ",", " ")) {
			n, err := strconv.ParseUint(word, 0, 32)
			require.NoError(t, err)
			got = append(got, uint32(n))
		}
		require.Greater(t, len(want), 100)
		if want[2] != got[2] {
			t.Logf("%s: made by another version of glslang", a[1])
			continue
		}
		assert.Equal(t, want, got, a[1])
	}
}
