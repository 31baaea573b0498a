package runtime

// Tests of the keys of programs, of what stands in for a compiler, and of where the
// cache is.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/kernelcache"
	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parts is everything that a compiled program depends on.
type parts struct {
	backend, arch    string
	identity, target []string
	flags            []string
	name, text       string
	defines          []source.Define
	header           string
	features         source.Features
}

func complete() parts {
	return parts{
		backend: "cuda", arch: "sm_90",
		identity: []string{"driver 550.54", "nvrtc 12.4", "--std=c++17", "--fmad=false"},
		target:   []string{"linux/amd64", "avx2", "abi 3"},
		flags:    []string{"-O3", "-g"},
		name:     "k.cl", text: "#include \"k.h\"\nkernel void k(global T *x) { x[0] = FIVE; }\n",
		defines:  []source.Define{{Name: "T", Value: "int"}, {Name: "TILE", Value: "16"}},
		header:   "#define FIVE 5\n",
		features: source.Portable,
	}
}

// keys returns the complete key and the target's key of a program.
func (p parts) keys(t *testing.T) (whole, target kernelcache.Key) {
	u, err := source.Parse(p.text, source.Options{Name: p.name, Defines: p.defines, Features: &p.features,
		Includes: []fs.FS{fstest.MapFS{"k.h": {Data: []byte(p.header)}}}})
	require.NoError(t, err)
	c := &core{info: Info{Backend: p.backend, Arch: p.arch}, compiler: &namedCompiler{
		identity: p.identity, target: p.target}}
	c.programs = programs{core: c, keys: map[programKey]kernelcache.Key{}}
	key := programKey{unit: u}
	whole, err = c.programs.cacheKey(t.Context(), key, p.flags)
	require.NoError(t, err)
	assert.Equal(t, whole, c.programs.keys[key], "it is noted")
	return whole, c.programs.targetKey(key, p.flags)
}

// namedCompiler is a compiler that only has an identity.
type namedCompiler struct {
	driver.Compiler
	identity, target []string
	err              error
}

func (c *namedCompiler) Identity(context.Context) ([]string, error) { return c.identity, c.err }
func (c *namedCompiler) Target() []string                           { return c.target }

func TestEveryPartOfTheKeyCounts(t *testing.T) {
	base, baseTarget := complete().keys(t)
	again, againTarget := complete().keys(t)
	require.Equal(t, base, again, "the same parts are the same key")
	require.Equal(t, baseTarget, againTarget)
	require.NotEqual(t, base, baseTarget)
	seen := map[kernelcache.Key]string{base: "base", baseTarget: "the target's key"}
	for _, tc := range []struct {
		part   string
		change func(p *parts)
		// whether the key for every compiler changes, and the complete key
		target, whole bool
	}{
		{"backend", func(p *parts) { p.backend = "rocm" }, true, true},
		{"architecture", func(p *parts) { p.arch = "sm_89" }, true, true},
		{"driver version", func(p *parts) { p.identity[0] = "driver 550.90" }, false, true},
		{"compiler version", func(p *parts) { p.identity[1] = "nvrtc 12.5" }, false, true},
		{"fixed option", func(p *parts) { p.identity[3] = "--fmad=true" }, false, true},
		{"order of the fixed options", func(p *parts) { slices.Reverse(p.identity[2:]) }, false, true},
		{"fixed option moved to the program's", func(p *parts) {
			p.identity, p.flags = p.identity[:3], append([]string{p.identity[3]}, p.flags...)
		}, true, true},
		{"system of the target", func(p *parts) { p.target[0] = "darwin/amd64" }, true, false},
		{"processor features of the target", func(p *parts) { p.target[1] = "avx2,avx512f" }, true, false},
		{"ABI of the target", func(p *parts) { p.target[2] = "abi 4" }, true, false},
		{"option", func(p *parts) { p.flags[0] = "-O2" }, true, true},
		{"option more", func(p *parts) { p.flags = append(p.flags, "") }, true, true},
		{"option less", func(p *parts) { p.flags = p.flags[:1] }, true, true},
		{"order of the options", func(p *parts) { slices.Reverse(p.flags) }, true, true},
		{"options joined", func(p *parts) { p.flags = []string{"-O3-g"} }, true, true},
		{"name", func(p *parts) { p.name = "other.cl" }, true, true},
		{"text", func(p *parts) { p.text += " " }, true, true},
		{"value of a definition", func(p *parts) { p.defines[1].Value = "32" }, true, true},
		{"name of a definition", func(p *parts) { p.defines[1].Name = "TILES" }, true, true},
		{"definition less", func(p *parts) { p.defines = p.defines[:1] }, true, true},
		{"order of the definitions", func(p *parts) { slices.Reverse(p.defines) }, true, true},
		{"content of an included file", func(p *parts) { p.header = "#define FIVE 6\n" }, true, true},
		{"comment in an included file", func(p *parts) { p.header += "//\n" }, true, true},
		{"feature FP64", func(p *parts) { p.features.FP64 = false }, true, true},
		{"feature FP16", func(p *parts) { p.features.FP16 = true }, true, true},
		{"feature Int64Atomic", func(p *parts) { p.features.Int64Atomic = false }, true, true},
		{"feature FastFMA", func(p *parts) { p.features.FastFMA = true }, true, true},
		{"feature Subgroups", func(p *parts) { p.features.Subgroups = true }, true, true},
	} {
		p := complete()
		tc.change(&p)
		whole, target := p.keys(t)
		for _, key := range []struct {
			key, base kernelcache.Key
			changes   bool
		}{{whole, base, tc.whole}, {target, baseTarget, tc.target}} {
			if !key.changes {
				assert.Equal(t, key.base, key.key, tc.part)
				continue
			}
			assert.NotContains(t, seen, key.key, "%s has the key of %s", tc.part, seen[key.key])
			seen[key.key] = tc.part
		}
	}
}

// portableBackend is a null backend whose binaries depend on a target, and whose
// compiler may be missing.
type portableBackend struct {
	nullBackend
	target    string
	installed string // the compiler, or ""
}

func (b *portableBackend) Open(ctx context.Context, i int, cfg *Config) (driver.Device, error) {
	d, err := b.nullBackend.Open(ctx, i, cfg)
	if err != nil {
		return nil, err
	}
	return &portableDevice{d.(*nullDevice), b}, nil
}

type portableDevice struct {
	*nullDevice
	b *portableBackend
}

func (d *portableDevice) Target() []string { return []string{d.b.target} }
func (d *portableDevice) Identity(context.Context) ([]string, error) {
	if d.b.installed == "" {
		return nil, fmt.Errorf("install one: %w", ErrUnsupported)
	}
	return []string{d.b.installed}, nil
}

// program builds the null program on a device of b with a cache and bundles.
func (b *portableBackend) program(t *testing.T, dir string, bundles map[string][]byte) (*Session, *Program, error) {
	b.name, b.devices = "cpu", 1
	fsys := fstest.MapFS{}
	for name, data := range bundles {
		fsys[name] = &fstest.MapFile{Data: data}
	}
	s, err := New(Config{Backends: []driver.Backend{b}, CacheDir: dir, Bundles: fsys})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	u, err := source.Parse(nullText, source.Options{Name: "null.cl"})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), u)
	return s, p, err
}

func TestBundleInsteadOfACompiler(t *testing.T) {
	s, _, err := (&portableBackend{target: "avx2", installed: "g++ 12"}).program(t, "off", nil)
	require.NoError(t, err)
	var buf bytes.Buffer
	_, err = s.Cache().Export(&buf, nil)
	require.NoError(t, err)
	bundles := map[string][]byte{"kernels.bundle": buf.Bytes()}

	for _, tc := range []struct{ target, compiler, from string }{
		{"avx2", "g++ 12", "bundle"},   // the whole key matches
		{"avx512", "g++ 12", "bundle"}, // the target is not a part of the complete key
		{"avx2", "g++ 13", "compiled"}, // another compiler: what it makes may differ
		{"avx2", "", "bundle"},         // no compiler: the target decides
		{"avx512", "", ""},             // and it is another one
	} {
		b := &portableBackend{target: tc.target, installed: tc.compiler}
		s, p, err := b.program(t, "off", bundles)
		if tc.from == "" {
			assert.ErrorIs(t, err, ErrUnsupported)
			assert.ErrorContains(t, err, "install one", "what to do about it")
			continue
		}
		require.NoError(t, err, tc)
		assert.Equal(t, tc.from, p.Built().From, tc)
		assert.Equal(t, tc.from == "compiled", b.compiles.Load() == 1, tc)
		assert.Equal(t, tc.from == "compiled", s.Cache().Stats().Compiles == 1, tc)
	}

	// The directory of a machine with a compiler serves one without.
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	_, _, err = (&portableBackend{target: "avx2", installed: "g++ 12"}).program(t, dir, nil)
	require.NoError(t, err)
	_, p, err := (&portableBackend{target: "avx2"}).program(t, dir, nil)
	require.NoError(t, err)
	assert.Equal(t, "disk", p.Built().From)
	again, err := (&Device{core: p.core.device}).Program(t.Context(), p.Unit(), ProgramOptions{Implementation: Portable})
	require.NoError(t, err)
	assert.Equal(t, "memory", again.Built().From)

	// What cannot be loaded, and cannot be compiled anew, says both.
	b := &portableBackend{target: "avx2"}
	b.refuseLoads = 1 << 40
	_, _, err = b.program(t, dir, nil)
	assert.ErrorIs(t, err, ErrCorrupt)
	assert.ErrorIs(t, err, ErrUnsupported)
}

// An entry that the driver refuses is not taken from the bundle a second time.
func TestBundleThatTheDriverRefuses(t *testing.T) {
	s, _, err := (&portableBackend{target: "avx2", installed: "g++ 12"}).program(t, "off", nil)
	require.NoError(t, err)
	var buf bytes.Buffer
	_, err = s.Cache().Export(&buf, nil)
	require.NoError(t, err)
	b := &portableBackend{target: "avx2", installed: "g++ 12"}
	b.refuseLoads = 1
	_, p, err := b.program(t, "off", map[string][]byte{"kernels.bundle": buf.Bytes()})
	require.NoError(t, err)
	assert.Equal(t, "compiled", p.Built().From)
	assert.EqualValues(t, 1, b.compiles.Load())
}

// A user without a home directory gets one warning, and everything works.
func TestCacheWithoutAHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData", "home"} {
		t.Setenv(name, "")
	}
	t.Setenv("CONCORD_CACHE_DIR", "")
	assert.Empty(t, cacheDir(Config{}))
	var buf bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
	defer slog.SetDefault(old)
	_, p, err := (&portableBackend{installed: "g++"}).program(t, "", nil)
	require.NoError(t, err)
	assert.Equal(t, "compiled", p.Built().From)
	assert.Equal(t, 1, bytes.Count(buf.Bytes(), []byte("kept in memory only")), "%s", &buf)
	assert.NotEmpty(t, p.core.device.session.Cache().Stats().DiskOff)

	buf.Reset()
	s, _, err := (&portableBackend{installed: "g++"}).program(t, "off", nil)
	require.NoError(t, err)
	assert.Empty(t, buf.String(), "that is what was asked for")
	assert.Empty(t, s.Cache().Stats().DiskOff)
}

func TestCacheSizeIsTheDisksLimit(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	o := cacheOptions(Config{CacheDir: dir, CacheSize: 12345})
	assert.EqualValues(t, 12345, o.DiskBytes)
	assert.Equal(t, dir, o.Dir)
}

func TestPrecompile(t *testing.T) {
	b := &nullBackend{}
	s, d := open(t, b, Config{})
	var requests []ProgramRequest
	for i := range 9 {
		u, err := source.Parse(nullText, source.Options{Name: fmt.Sprintf("null%d.cl", i)})
		require.NoError(t, err)
		requests = append(requests, ProgramRequest{Unit: u})
	}
	var steps []int
	require.NoError(t, d.Precompile(t.Context(), requests, func(done, total int) {
		assert.Equal(t, 9, total)
		steps = append(steps, done)
	}))
	assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}, steps)
	assert.EqualValues(t, 9, b.compiles.Load())
	assert.Zero(t, b.loads.Load(), "nothing is loaded")
	assert.Empty(t, d.core.programs.keys, "nothing is kept of programs that nobody opened")
	for _, r := range requests {
		p, err := d.Program(t.Context(), r.Unit)
		require.NoError(t, err)
		assert.Equal(t, "memory", p.Built().From)
	}
	require.NoError(t, d.Precompile(t.Context(), requests, nil))
	require.NoError(t, d.Precompile(t.Context(), nil, nil))
	assert.EqualValues(t, 9, s.Cache().Stats().Compiles)
	assert.Len(t, d.core.programs.keys, 9)
	steps = nil
	err := d.Precompile(t.Context(), requests, func(done, _ int) {
		if steps = append(steps, done); done < 3 {
			panic("boom")
		}
	})
	assert.ErrorIs(t, err, ErrInvalidArgument)
	assert.ErrorContains(t, err, "progress panicked: boom")
	assert.Len(t, steps, 9, "it goes on")
}

func TestPrecompileFails(t *testing.T) {
	b := &nullBackend{}
	_, d := open(t, b, Config{})
	good, err := source.Parse(nullText, source.Options{Name: "good.cl"})
	require.NoError(t, err)
	bad, err := source.Parse(nullText, source.Options{Name: "bad.cl"})
	require.NoError(t, err)
	b.compile = func(ctx context.Context) error { return ctx.Err() }
	done := 0
	err = d.Precompile(t.Context(), []ProgramRequest{{}, {Unit: good}, {Unit: bad}}, func(n, _ int) { done = n })
	assert.ErrorIs(t, err, ErrInvalidArgument)
	assert.Equal(t, 3, done, "it goes on after an error")
	assert.EqualValues(t, 2, b.compiles.Load())

	b.compile = func(context.Context) error { return &BuildError{Source: "k", Log: "error: no"} }
	units := make([]ProgramRequest, 3)
	for i := range units {
		units[i].Unit = bad
		units[i].Options.Flags = []string{fmt.Sprint(i)}
	}
	err = d.Precompile(t.Context(), units, nil)
	assert.ErrorIs(t, err, ErrCompile)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	assert.Len(t, joined.Unwrap(), 3)

	ctx, cancel := context.WithCancel(t.Context())
	b.compile = func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() }
	units[0].Options.Flags = []string{"new"}
	err = d.Precompile(ctx, units[:1], nil)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorContains(t, err, "0 of 1 programs done")
	require.NoError(t, d.Close())
	assert.True(t, errors.Is(d.Precompile(t.Context(), units, nil), ErrClosed))
}
