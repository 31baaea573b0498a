package render_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim"
)

// usual are the built-ins that are always compared.
var usual = []string{"exp", "pow", "sincos", "fma", "remquo", "mul_hi", "normalize", "shuffle2", "nextafter"}

// TestVulkanBuiltins compares the built-ins of SPIR-V modules with those of the host: some, and with
// CONCORD_STRESS=check every form of all. CONCORD_FACTS is what the device is said to compute exactly; with 0, the
// library's own quotients, roots and fma are tested.
func TestVulkanBuiltins(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	every := os.Getenv("CONCORD_STRESS") == "check"
	k := buildTools(t)
	host, device := filepath.Join(k.dir, "bhost"), filepath.Join(k.dir, "bvulkan")
	b, err := exec.Command("gcc", "-O1", "-w", "-o", host, "testdata/bdriver.c", "-ldl", "-lpthread").CombinedOutput()
	require.NoError(t, err, "%s", head(b))
	b, err = exec.Command("gcc", "-O1", "-w", "-DVULKAN", "-I../spirv/testdata", "-o", device, "testdata/bdriver.c",
		"-lvulkan").CombinedOutput()
	if err != nil {
		sim.Absent(t, "vulkan", "no driver: install libvulkan-dev and mesa-vulkan-drivers: "+string(head(b)))
	}
	facts, _ := strconv.Atoi(os.Getenv("CONCORD_FACTS"))
	features := source.Features{FP64: true, FP16: true, Int64Atomic: true}
	write := func(t *testing.T, file string, cases []diffCase) {
		for i := range cases {
			u, err := source.Parse(cases[i].text(), source.Options{Name: "builtins.cl", Features: &features})
			require.NoError(t, err)
			m, err := u.Module(t.Context())
			require.NoError(t, err, "%s", cases[i].text())
			var head []byte
			for _, w := range []int{0, m.Kernels[0].ArgBytes, 0, len(m.Constants), facts} {
				head = binary.LittleEndian.AppendUint32(head, uint32(w))
			}
			head = append(append(head, m.Constants...), m.Words...)
			require.NoError(t, os.WriteFile(file+"."+cases[i].kernel, head, 0o644))
		}
	}
	pair := diffPair{host: host, device: device, features: features, write: write}
	only := os.Getenv("CONCORD_BUILTIN")
	cases := diffCases(only, true)
	switch {
	case !every:
		cases = slices.DeleteFunc(cases, func(c diffCase) bool { return !slices.Contains(usual, c.b.Name) })
	case only == "" || only == "convert":
		cases = append(cases, convertCases()...)
	}
	for lo := 0; lo < len(cases); lo += 100 {
		diffBatch(t, k, pair, cases[lo:min(lo+100, len(cases))])
	}
}
