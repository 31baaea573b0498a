//go:build cgo && unix

package cpu

// Finding the host's C++ compiler and running it: never through a shell, in a
// process group of its own that ends with the context, in a private directory
// that is always removed.

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// toolchain is a compiler that was found.
type toolchain struct {
	path    string   // of the program
	args    []string // its first arguments, from CXX
	version string   // the first line that --version prints
	linker  string   // its linker, if objects can be linked without the compiler's help
}

// maxLog is the largest number of bytes that are kept of a compiler's output.
const maxLog = 4 << 20

// waitDelay is the time for which the pipes of a killed compiler may stay open.
const waitDelay = 2 * time.Second

// found caches the last toolchain with the variables that determined it, because a query
// of a compiler's version starts a process.
var found struct {
	sync.Mutex
	key       string
	toolchain *toolchain
}

// toolchain returns the compiler for portable programs.
func (d *device) toolchain(ctx context.Context) (*toolchain, error) {
	if d.reference {
		return nil, errReference
	}
	c, _, err := findToolchain(ctx)
	return c, err
}

// findToolchain looks for the compiler in CXX, or if that is empty, for c++, g++ and clang++. If
// CXX names a program that does not exist, no other compiler is tried, and the error says so.
func findToolchain(ctx context.Context) (c *toolchain, tried []string, err error) {
	candidates := [][]string{{"c++"}, {"g++"}, {"clang++"}}
	if cxx := strings.Fields(os.Getenv("CXX")); len(cxx) > 0 {
		candidates = [][]string{cxx}
	}
	for _, words := range candidates {
		path, lookErr := exec.LookPath(words[0])
		if lookErr != nil {
			tried = append(tried, words[0]+": not found in PATH")
			continue
		}
		if path, lookErr = filepath.Abs(path); lookErr != nil {
			tried = append(tried, words[0]+": "+lookErr.Error())
			continue
		}
		c = &toolchain{path: path, args: words[1:]}
		if err := c.identify(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, tried, ctx.Err()
			}
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) { // another compiler would not help
				return nil, append(tried, path+": "+err.Error()), fmt.Errorf("%s: %w", path, err)
			}
			tried = append(tried, path+": "+err.Error())
			continue
		}
		return c, append(tried, path+": "+firstLine(c.version)), nil
	}
	return nil, tried, fmt.Errorf("no C++ compiler: %s; %s: %w", strings.Join(tried, "; "), installHint,
		driver.ErrNoCompiler)
}

// identify asks the compiler for its version.
func (c *toolchain) identify(ctx context.Context) error {
	info, err := os.Stat(c.path)
	if err != nil {
		return err
	}
	key := strings.Join(append([]string{c.path, info.ModTime().String(), fmt.Sprint(info.Size())}, c.args...), "\x00")
	found.Lock()
	known := found.toolchain
	if found.key != key {
		known = nil
	}
	found.Unlock()
	if known != nil {
		c.version, c.linker = known.version, known.linker
		return nil
	}
	out, err := c.run(ctx, "", append(slices.Clone(c.args), "--version")...)
	if err != nil {
		return fmt.Errorf("--version: %w", err)
	}
	lines := strings.SplitN(strings.TrimSpace(out), "\n", 3)
	c.version = strings.Join(lines[:min(len(lines), 2)], "\n")
	if c.version == "" {
		return errors.New("--version prints nothing")
	}
	c.linker = c.findLinker(ctx)
	found.Lock()
	defer found.Unlock()
	found.key, found.toolchain = key, c
	return nil
}

// findLinker returns the path of the linker, or "" where only the compiler knows how to use it.
func (c *toolchain) findLinker(ctx context.Context) string {
	if goruntime.GOOS != "linux" || goruntime.GOARCH != "amd64" || len(c.args) > 0 ||
		strings.Contains(c.version, "clang") {
		return ""
	}
	out, err := c.run(ctx, "", "-print-prog-name=ld")
	if err != nil {
		return ""
	}
	path, err := exec.LookPath(strings.TrimSpace(out))
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// loopless are GCC's options for a text without loops but those over items: the optimizations of -O3 that such
// a text gains from, in three quarters of the time. Loops need more: the tiles of a product are up to eight times
// slower with these.
var loopless = []string{
	"-O1", "-ftree-loop-vectorize", "-ftree-slp-vectorize", "-fvect-cost-model=dynamic", "-fpeel-loops", "-fgcse",
	"-finline-functions", "-finline-small-functions", "--param=max-inline-insns-single=200",
	"--param=max-inline-insns-auto=30",
	"--param=inline-min-speedup=15", "--param=early-inlining-insns=14",
}

// flags returns all options of a build except those of the program itself, whose text may have loops.
func (c *toolchain) flags(loops bool) []string {
	flags := append(slices.Clone(c.args), hostFlags...)
	if !loops && !strings.Contains(c.version, "clang") {
		flags = append(flags, loopless...)
	}
	if f := archFlag(); f != "" {
		flags = append(flags, f)
	}
	if strings.Contains(c.version, "clang") {
		flags = append(flags, "-ferror-limit=50")
	} else {
		// GNU's unique symbols would keep a library loaded after it was closed.
		// A loop over items is vectorized with run-time checks that its buffers do not overlap; by
		// default GCC does not vectorize if more than ten pairs need such a check.
		// GCC 12 splits some loops wrongly that run their body before their condition: one round too many is run.
		flags = append(flags, "-fmax-errors=50", "-fno-gnu-unique", "--param=vect-max-version-for-alias-checks=64",
			"-fno-split-loops")
		if goruntime.GOARCH == "amd64" {
			// GCC 12 picks wrong lanes in 512-bit permutations, and folds constant
			// vectors wrongly with the vector form of popcnt.
			flags = append(flags, "-mprefer-vector-width=256", "-mno-avx512vpopcntdq")
		}
	}
	if goruntime.GOOS == "linux" {
		// A frame larger than the guard below an item's stack touches every page of
		// it on its way down.
		flags = append(flags, "-fstack-clash-protection", "-Wl,--as-needed")
	}
	return flags
}

// libraries are all that a program without options of its own calls functions of. Looking for those of C++
// and the files that begin and end an object takes a tenth of a small program's build.
func (c *toolchain) libraries() []string {
	if goruntime.GOOS != "linux" || strings.Contains(c.version, "clang") {
		return nil // by another name, or it may have no libgcc
	}
	return []string{"-fno-use-linker-plugin", "-nostdlib", "-lm", "-lgcc", "-lc"}
}

// build compiles text and returns the shared object and the output of the compiler.
// The error is errBuild if the compiler rejected the text.
func (c *toolchain) build(ctx context.Context, text string, loops bool,
	options []string) (object []byte, log string, err error) {
	objects, log, err := c.buildTables(ctx, text, loops, options, []string{programTable})
	if err != nil {
		return nil, log, err
	}
	return objects[0], log, nil
}

// buildTables is build for a text with several tables of kernels; it returns a shared object for each,
// whose table has the usual name and that contains only what this table needs. More than one table needs a
// toolchain with a linker, and no options.
func (c *toolchain) buildTables(ctx context.Context, text string, loops bool, options,
	tables []string) (objects [][]byte, log string, err error) {
	// The object that is read back will be run, so no other user may be able to replace the directory.
	dir, err := file.TempDir(buildPrefix)
	if err != nil {
		return nil, "", err
	}
	sweepOnce.Do(func() { sweep(filepath.Dir(dir), time.Now().Add(-staleAfter)) })
	defer func() {
		if removeErr := os.RemoveAll(dir); err == nil {
			err = removeErr
		}
	}()
	in, out := filepath.Join(dir, "program.cpp"), filepath.Join(dir, "program.so")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		return nil, "", err
	}
	apart := c.linker != "" && len(options) == 0
	args := append(append(c.flags(loops), options...), "-o", out, in)
	switch {
	case apart:
		args = append(c.flags(loops), "-c", "-ffunction-sections", "-fdata-sections", "-o", filepath.Join(dir, objectName),
			in)
	case len(options) == 0:
		args = append(args, c.libraries()...)
	}
	log, err = c.run(ctx, dir, args...)
	log = strings.ReplaceAll(log, in, "<rendered>")
	if err != nil {
		return nil, log, refused(err)
	}
	for _, table := range tables {
		if apart {
			if more, err := c.link(ctx, dir, out, table); err != nil {
				return nil, log + more, refused(err)
			}
		}
		object, err := os.ReadFile(out)
		if err != nil {
			return nil, log, err
		}
		objects = append(objects, object)
	}
	return objects, log, nil
}

// buildBatch builds the parts of one text.
func (c *toolchain) buildBatch(ctx context.Context, parts []source.HostPart) (objects [][]byte, log string, err error) {
	tables, loops := make([]string, len(parts)), false
	for i := range tables {
		tables[i], loops = source.HostTable(i), loops || parts[i].Loops
	}
	return c.buildTables(ctx, source.HostText(parts), loops, nil, tables)
}

// refused turns the error of a compiler that ended by itself into errBuild.
func refused(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return errBuild
	}
	return err
}

const (
	programTable = "concord_program" // what the table of kernels is named in every shared object
	objectName   = "program.o"
	exportsName  = "exports"
)

// link makes a shared object of what a table in the compiled object needs. Calling the linker
// itself saves starting the compiler and its own linker driver, and reading the libraries, of which few programs
// call anything: one that does is linked again by the compiler, which knows where they are.
func (c *toolchain) link(ctx context.Context, dir, out, table string) (log string, err error) {
	script := filepath.Join(dir, exportsName)
	if err := os.WriteFile(script, []byte("{ global: "+programTable+"; local: *; };\n"), 0o600); err != nil {
		return "", err
	}
	args := []string{"--gc-sections", "--version-script=" + script, "-u", table}
	if table != programTable {
		args = append(args, "--defsym="+programTable+"="+table)
	}
	object := filepath.Join(dir, objectName)
	linker := toolchain{path: c.linker}
	log, err = linker.run(ctx, dir, append(args, "-shared", "-o", out, object)...)
	if err == nil {
		f, openErr := elf.Open(out)
		if openErr != nil {
			return log, openErr
		}
		defer f.Close()
		if calls, err := f.ImportedSymbols(); err == nil && len(calls) == 0 {
			return log, nil
		}
	}
	if ctx.Err() != nil {
		return log, err
	}
	for i, a := range args {
		args[i] = "-Wl," + a
	}
	return c.run(ctx, dir, append(append(args, "-shared", "-Wl,--as-needed", "-o", out, object), c.libraries()...)...)
}

// A process that is killed while it compiles leaves its build directory behind. The next process that
// compiles removes directories that are too old to be in use.
const (
	buildPrefix = "concord-build-"
	staleAfter  = time.Hour
)

var sweepOnce sync.Once

// sweep removes the build directories of this user that were last changed before the time then.
func sweep(tmp string, then time.Time) {
	entries, _ := os.ReadDir(tmp) // a directory that cannot be read is not cleaned
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), buildPrefix) {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(then) {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == os.Getuid() {
			_ = os.RemoveAll(filepath.Join(tmp, e.Name())) // another process may do the same
		}
	}
}

// passed are the environment variables that are passed to the compiler, which needs them to find
// its own parts.
var passed = []string{"PATH", "HOME", "LD_LIBRARY_PATH", "SDKROOT", "DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET"}

// run runs the compiler and returns its output.
func (c *toolchain) run(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Dir = dir
	cmd.Env = []string{"LANG=C", "LC_ALL=C"}
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	if dir != "" {
		cmd.Env = append(cmd.Env, "TMPDIR="+dir) // so that the files of a killed compiler are removed, too
	}
	out := &limited{left: maxLog}
	cmd.Stdout, cmd.Stderr = out, out
	// A compiler driver starts other processes; killing the process group ends them all.
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = waitDelay
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.kept.String(), err
}

// limited is a writer that keeps the beginning of its input.
type limited struct {
	kept bytes.Buffer // not embedded, because io.Copy would then call its ReadFrom instead of Write
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	_, _ = l.kept.Write(b[:n]) // never fails
	return len(b), nil
}

// probeCompiler returns the version of the compiler, and the attempts to find it.
func probeCompiler(ctx context.Context) (version string, tried []string) {
	c, tried, err := findToolchain(ctx)
	if err != nil {
		return "", append(tried, "portable programs need a C++ compiler: "+installHint)
	}
	return firstLine(c.version), tried
}
