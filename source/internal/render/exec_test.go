package render_test

// Executed tests: every program of internal/verify/stress is rendered for the host,
// compiled, run, and compared with the expected output. CONCORD_STRESS=update rewrites the
// expectations from an OpenCL device, CONCORD_STRESS=check compares with it; the C driver that runs
// both is testdata/driver.c.

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source"
)

// stressRun is one "// run:" line with the "// want:" lines below it.
type stressRun struct {
	kernel, global, local string
	args, want            []string
	line                  int
}

// stressProgram is one file of the stress set.
type stressProgram struct {
	name, text string
	hostOnly   bool // OpenCL devices refuse it; the file has the reason
	runs       []stressRun
}

func mustParse(t *testing.T, text string, opt source.Options) *source.Unit {
	t.Helper()
	u, err := source.Parse(text, opt)
	require.NoError(t, err)
	return u
}

func readStress(t *testing.T, file string) stressProgram {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	p := stressProgram{name: filepath.Base(file), text: string(b)}
	for i, line := range strings.Split(p.text, "\n") {
		if rest, ok := strings.CutPrefix(line, "// run: "); ok {
			r := stressRun{local: "1", line: i}
			for _, f := range strings.Fields(rest) {
				key, value, _ := strings.Cut(f, "=")
				switch key {
				case "kernel":
					r.kernel = value
				case "global":
					r.global = value
				case "local":
					r.local = value
				case "args":
					r.args = splitArgs(value)
				default:
					t.Fatalf("%s:%d: unknown key %q", file, i+1, key)
				}
			}
			p.runs = append(p.runs, r)
		}
		p.hostOnly = p.hostOnly || strings.HasPrefix(line, "// host only:")
		if rest, ok := strings.CutPrefix(line, "// want: "); ok {
			r := &p.runs[len(p.runs)-1]
			r.want = append(r.want, strings.TrimSpace(rest))
		}
	}
	return p
}

// splitArgs splits a list of arguments only at commas after which an argument begins, since values
// may contain commas.
func splitArgs(s string) []string {
	var args []string
	for _, part := range strings.Split(s, ",") {
		if strings.Contains(part, ":") || len(args) == 0 {
			args = append(args, part)
		} else {
			args[len(args)-1] += "," + part
		}
	}
	return args
}

// tools are the compiled drivers.
type tools struct{ dir, cxx, host, pocl string }

// buildTools compiles the drivers, or skips the test on a machine without a
// compiler.
func buildTools(t *testing.T) tools {
	t.Helper()
	k := tools{dir: t.TempDir(), cxx: os.Getenv("CXX")}
	if k.cxx == "" {
		k.cxx = "g++"
	}
	for _, tool := range []string{k.cxx, "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no C++ compiler here: %v", err)
		}
	}
	k.host = filepath.Join(k.dir, "host")
	out, err := exec.Command("gcc", "-O1", "-o", k.host, "testdata/driver.c", "-I../../../csrc/host",
		"-ldl").CombinedOutput()
	require.NoError(t, err, "%s", out)
	if os.Getenv("CONCORD_STRESS") != "" {
		k.pocl = filepath.Join(k.dir, "pocl")
		out, err = exec.Command("gcc", "-O1", "-w", "-DPOCL", "-o", k.pocl, "testdata/driver.c", "-ldl").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return k
}

// compile makes a shared object of a host rendering.
func (k tools) compile(t *testing.T, name, cpp string) string {
	t.Helper()
	src, so := filepath.Join(k.dir, name+".cpp"), filepath.Join(k.dir, name+".so")
	require.NoError(t, os.WriteFile(src, []byte(cpp), 0o644))
	args := []string{"-std=c++17", "-O1", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off",
		"-Werror=return-type", "-w", "-o", so, src}
	out, err := exec.Command(k.cxx, args...).CombinedOutput()
	require.NoError(t, err, "%s", head(out))
	return so
}

func head(b []byte) []byte { return b[:min(len(b), 4000)] }

// run runs one kernel and returns the lines it printed.
func run(t *testing.T, driver, program string, r stressRun) ([]string, error) {
	t.Helper()
	args := append([]string{program, r.kernel, r.global, r.local}, r.args...)
	cmd := exec.Command(driver, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Logf("%s", head(errs.Bytes()))
		return nil, err
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n"), nil
}

func TestStress(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles C++")
	}
	files, err := filepath.Glob("../../../internal/verify/stress/programs/*.cl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	k := buildTools(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".cl"), func(t *testing.T) {
			p := readStress(t, file)
			if k.pocl != "" && !p.hostOnly {
				oracle(t, k, file, &p)
			}
			u, err := source.Parse(p.text, source.Options{Name: file})
			require.NoError(t, err)
			cpp, err := u.Render(source.Host)
			require.NoError(t, err)
			so := k.compile(t, p.name, cpp)
			for _, r := range p.runs {
				got, err := run(t, k.host, so, r)
				require.NoError(t, err, "kernel %s", r.kernel)
				assert.Equal(t, r.want, got, "kernel %s", r.kernel)
			}
		})
	}
}

// oracle runs the program on an OpenCL device: the original text, and the rendering of
// RenderOffsets with offsets of zero.
func oracle(t *testing.T, k tools, file string, p *stressProgram) {
	update := os.Getenv("CONCORD_STRESS") == "update"
	lines := strings.Split(p.text, "\n")
	u, err := source.Parse(p.text, source.Options{Name: file})
	require.NoError(t, err)
	text, err := u.Render(source.OpenCL)
	require.NoError(t, err)
	plain := filepath.Join(k.dir, "plain.cl")
	require.NoError(t, os.WriteFile(plain, []byte(text), 0o644))
	for i := len(p.runs) - 1; i >= 0; i-- {
		r := &p.runs[i]
		got, err := run(t, k.pocl, plain, *r)
		require.NoError(t, err, "kernel %s on OpenCL", r.kernel)
		if !update {
			assert.Equal(t, r.want, got, "kernel %s on OpenCL", r.kernel)
			continue
		}
		out := append([]string{}, lines[:r.line+1]...)
		for _, g := range got {
			out = append(out, "// want: "+g)
		}
		lines = append(out, lines[r.line+1+len(r.want):]...)
		r.want = got
	}
	if update {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644))
	}
	text, err = u.RenderOffsets()
	require.NoError(t, err)
	moved := filepath.Join(k.dir, "offsets.cl")
	require.NoError(t, os.WriteFile(moved, []byte(text), 0o644))
	for _, r := range p.runs {
		kernel, _ := u.Kernel(r.kernel)
		for _, q := range kernel.Params {
			if q.Pointer && q.Space != source.Local {
				r.args = append(r.args, "u64:0")
			}
		}
		got, err := run(t, k.pocl, moved, r)
		if assert.NoError(t, err, "kernel %s with offsets", r.kernel) {
			assert.Equal(t, r.want, got, "kernel %s with offsets", r.kernel)
		}
	}
}
