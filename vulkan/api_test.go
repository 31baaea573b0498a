package vulkan

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run compiles and runs a program in C, and returns what it prints.
func run(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	file, program := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), "gcc", "-std=c11", "-w", "-I../csrc/vulkan", "-o", program, file).
		CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), program).Output()
	require.NoError(t, err)
	return string(out)
}

func all(pattern, text string) [][]string {
	return regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
}

// TestDeclarations: every number, size and offset of vk.h is that of Vulkan's own header, where that is installed, and
// every function has as many parameters.
func TestDeclarations(t *testing.T) {
	if exec.CommandContext(t.Context(), "gcc", "-include", "vulkan/vulkan_core.h", "-xc", "-E", "/dev/null").Run() != nil {
		t.Skip("no gcc, or no vulkan/vulkan_core.h (Debian: libvulkan-dev)")
	}
	numbers, err := os.ReadFile("../csrc/vulkan/vk.h")
	require.NoError(t, err)
	structs, err := os.ReadFile("../csrc/vulkan/vk_types.h")
	require.NoError(t, err)
	var own strings.Builder
	lines := 0
	tell := func(expression string) {
		fmt.Fprintf(&own, "  printf(\"%%s %%lld\\n\", %q, (long long)%s);\n", expression, expression)
		lines++
	}
	for _, m := range all(`(?m)^(?:  (VK_\w+) = |#define (VK_\w+) )`, string(numbers)) {
		tell(m[1] + m[2])
	}
	for _, m := range all(`(?s)typedef struct (\w+) \{(.*?)\n\} `, string(structs)) {
		tell("sizeof(" + m[1] + ")")
		for _, f := range all(`(\w+)(\[\d+\])*[,;]`, m[2]) {
			if f[1] != "integerDotProducts" { // many members of the header
				tell("offsetof(" + m[1] + ", " + f[1] + ")")
			}
		}
	}
	require.Greater(t, lines, 500)
	body := "#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n" + own.String() + "  return 0;\n}\n"
	assert.Equal(t, run(t, "theirs", "#include <vulkan/vulkan_core.h>\n"+body), run(t, "ours", "#include \"vk.h\"\n"+body))

	header, err := exec.CommandContext(t.Context(), "gcc", "-include", "vulkan/vulkan_core.h", "-xc", "-E", "-P",
		"/dev/null").Output()
	require.NoError(t, err)
	functions := all(`(?s)X\((\w+), (\w+), \\?\s*\((.*?)\)\)`, string(numbers))
	require.Greater(t, len(functions), 50)
	for _, f := range functions {
		theirs := regexp.MustCompile(`vk` + f[2] + `\(([^)]*)\)`).FindStringSubmatch(string(header))
		require.NotNil(t, theirs, f[2])
		assert.Equal(t, strings.Count(theirs[1], ","), strings.Count(f[3], ","), "parameters of vk%s", f[2])
		for i, p := range strings.Split(theirs[1], ",") {
			own := strings.Split(f[3], ",")[i]
			assert.Equal(t, strings.Count(p, "*"), strings.Count(own, "*"), "vk%s: %q, ours %q", f[2], p, own)
		}
	}
}
