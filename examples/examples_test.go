package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// examples lists every example with its expected output, in which ACCURACY is a number from 0.93 to 0.9999, NUMBER any
// whole one, and VALUES what the device's choices are from the start, and whether the cpu backend needs a C++ compiler
// for it.
var examples = []struct {
	name     string
	compiles bool
	prints   string
}{
	{"01-saxpy", true, "DEVICE: y[0] = 1, y[1] = 3, y[999] = 1999\n"},
	{"02-reduction", true, "DEVICE: the sum of 1000000 numbers is 4500000\n"},
	{"03-catalog", false, "DEVICE: [1 2 3 6]\nINDENT  [4 5 6 15]\n"},
	{"04-streams-events", true, "DEVICE: sum[0] = 1000, sum[4095] = 9190; the side stream's work was timed: true\n"},
	{"05-go-kernel", false, "DEVICE: [0 1 1 2 8 1 32]\n"},
	{"06-profile", false, "DEVICE: 20 launches, 338823680 operations\n"},
	{"07-tensors", false, "DEVICE: the loss fell: true; the network says [0 1 1 0]\n"},
	{"08-networks", false, "DEVICE: 162 parameters; more than 90 % are right: true; the network says [1 1 0 0]\n"},
	{"09-search", false, "DEVICE: 88 of 90 neighbours show the digit of their query\nno picture is written: sheet.png " +
		"as an argument makes one of them there\n"},
	{"10-ternary", false, "DEVICE: 2000 images that were not learned\nweights      bytes  accuracy  images/s\nfloat     " +
		"  436736    ACCURACY NUMBER\nternary      27392    ACCURACY NUMBER\n"},
	{"11-tuning", false, "DEVICE: the last of 65536 sums is 512, with VALUES\n"},
	{"12-groups", false, "DEVICE: the members have [[5 500] [5 500]]\nDEVICE: of 641 parameters the members have " +
		"[321 321] of each layer, or [576 65] of whole ones\nDEVICE: the sum is 6, after 0 fallbacks\n"},
}

// TestExamples builds the examples as they are shown and runs each on every available device.
func TestExamples(t *testing.T) {
	dirs, err := filepath.Glob("[0-9]*")
	require.NoError(t, err)
	require.Len(t, examples, len(dirs), "every example has a row: %v", dirs)
	bin := buildAll(t)
	devices, err := runtime.Devices(t.Context())
	require.NoError(t, err)
	cache := t.TempDir()
	for _, d := range devices {
		if d.ID == "cpu:reference" {
			continue // runs only the catalog
		}
		reason := cannotCompile(t, d.ID)
		for _, e := range examples {
			t.Run(d.ID+"/"+e.name, func(t *testing.T) {
				if reason != "" && (e.compiles || d.Backend != "cpu") {
					t.Skip(reason)
				}
				cmd := exec.CommandContext(t.Context(), filepath.Join(bin, e.name))
				cmd.Env = append(os.Environ(), "CONCORD_DEVICE="+d.ID, "CONCORD_CACHE_DIR="+cache)
				cmd.Stderr = os.Stderr
				out, err := cmd.Output()
				require.NoError(t, err)
				want := strings.NewReplacer("DEVICE", d.ID, "INDENT",
					strings.Repeat(" ", len(d.ID))).Replace(regexp.QuoteMeta(e.prints))
				want = strings.NewReplacer("ACCURACY", `0\.9[3-9]\d\d`, "NUMBER", ` *\d+`, "VALUES",
					regexp.QuoteMeta(values(t, d.ID))).Replace(want)
				assert.Regexp(t, "^"+want+"$", string(out))
			})
		}
	}
}

// values says which choices a device has before anything is tuned: a table may come with Concord.
func values(t *testing.T, device string) string {
	t.Helper()
	d, err := runtime.Open(t.Context(), device)
	require.NoError(t, err)
	defer d.Close()
	if table := d.TuneTarget().Carried(); table != nil && len(table.Values) > 0 {
		return table.String()
	}
	return "the defaults"
}

// buildAll builds the examples with the tags of this test and returns their folder.
func buildAll(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("building the examples needs the go command: ", err)
	}
	bin := t.TempDir()
	args := []string{"build", "-o", bin + string(filepath.Separator)}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-tags" {
				args = append(args, "-tags="+s.Value)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, "./...")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return bin
}

// cannotCompile returns why a device does not build portable programs, or "".
func cannotCompile(t *testing.T, name string) string {
	t.Helper()
	d, err := runtime.Open(t.Context(), name)
	require.NoError(t, err)
	defer d.Close()
	c, ok := d.Driver().(driver.Compiler)
	if !ok {
		return name + " builds no programs"
	}
	if _, err := c.Identity(t.Context()); err != nil {
		return err.Error()
	}
	return ""
}
