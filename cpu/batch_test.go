//go:build cgo && unix

package cpu

// Tests of building several units together.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// runOn loads a binary and runs its kernel k on 1000 floats.
func runOn(t *testing.T, d *device, u *source.Unit, bin driver.Binary) []float32 {
	t.Helper()
	m, err := d.Load(background(t), u, bin)
	require.NoError(t, err, u.Text())
	defer m.Close()
	k, err := m.Kernel("k")
	require.NoError(t, err)
	s := openStream(t, d)
	const n, local = 1024, 64
	in := make([]float32, n)
	for i := range in {
		in[i] = float32(i)/100 + 0.25
	}
	a, out := upload(t, s, in), upload(t, s, make([]float32, n))
	l := &driver.Launch{Kernel: k, Dim: 1, Global: [3]int{n, 1, 1}, Local: [3]int{local, 1, 1},
		Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: a}, {Kind: driver.ArgMemory, Memory: out}}}
	require.NoError(t, s.Launch(l))
	got := make([]float32, n)
	require.NoError(t, s.Download(background(t), bytesOf(got), out))
	return got
}

// TestCompileAll checks that units that are built together compute what each computes alone: they have the same
// names, and need different parts of the prelude, libraries and instructions.
func TestCompileAll(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	var units []*source.Unit
	for _, body := range []string{
		"out[i] = a[i] * 2;",
		"out[i] = fmod(a[i], 0.75f);", // the C library
		"out[i] = lgamma(a[i]);",
		"out[i] = fma(a[i], a[i], -0.5f) - a[i];", // another prelude
		"local float l[64]; l[get_local_id(0)] = a[i]; barrier(CLK_LOCAL_MEM_FENCE); out[i] = l[63 - get_local_id(0)];",
		"struct s v = {a[i], 3}; out[i] = helper(v) + table[i % 3];",
		"double x = a[i]; out[i] = pow(x, 1.25);",
		"float4 v = (float4)(a[i]); out[i] = dot(v, v.wzyx) + tanh(v.x);",
		"out[i] = mad(a[i], 3.0f, 1.0f);",
	} {
		units = append(units, parse(t, "struct s { float x; int n; };\nconstant float table[3] = {0.5f, 1, 2};\n"+
			"float helper(struct s v) { return v.x * v.n; }\n"+
			"kernel void k(global const float *a, global float *out) {\n  int i = get_global_id(0);\n  "+body+"\n}\n"))
	}
	bins, errs := d.CompileAll(background(t), units, nil)
	require.NoError(t, errors.Join(errs...))
	for i, u := range units {
		assert.Empty(t, bins[i].Log)
		alone, err := d.Compile(background(t), u, nil)
		require.NoError(t, err)
		want, got := runOn(t, d, u, alone), runOn(t, d, u, bins[i])
		for k := range want {
			require.Equal(t, math.Float32bits(want[k]), math.Float32bits(got[k]), "%s: item %d", u.Text(), k)
		}
		assert.Less(t, len(bins[i].Code), 2*len(alone.Code)+4096, "it has only its own kernels")
	}
	none, errs := d.CompileAll(background(t), nil, nil)
	assert.Empty(t, none)
	assert.Empty(t, errs)
	_, errs = d.CompileAll(background(t), units[:2], []string{"-O1"})
	assert.NoError(t, errors.Join(errs...), "options, one by one")
	_, errs = d.CompileAll(background(t), units[:2], []string{"-x"})
	require.Len(t, errs, 2)
	assert.ErrorIs(t, errs[1], driver.ErrInvalidArgument)
}

// TestCompileAllFailsAlone checks that a unit that cannot be rendered leaves the others as they are.
func TestCompileAllFailsAlone(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	features := source.Portable
	features.Subgroups = true
	group, err := source.Parse("kernel void k(global const float *a, global float *out) { out[get_global_id(0)] = "+
		"sub_group_all(1); }",
		source.Options{Name: "groups.cl", Features: &features})
	require.NoError(t, err)
	units := []*source.Unit{
		parse(t, "kernel void k(global const float *a, global float *out) { out[get_global_id(0)] = 1; }"),
		group,
		parse(t, "kernel void k(global const float *a, global float *out) { out[get_global_id(0)] = 2; }"),
	}
	bins, errs := d.CompileAll(background(t), units, nil)
	require.NoError(t, errors.Join(errs[0], errs[2]))
	var build *driver.BuildError
	require.ErrorAs(t, errs[1], &build)
	assert.Equal(t, "groups.cl", build.Source)
	assert.Equal(t, float32(1), runOn(t, d, units[0], bins[0])[5])
	assert.Equal(t, float32(2), runOn(t, d, units[2], bins[2])[5])
}

// TestBatchFailsAlone checks the same for a unit that makes the compiler refuse the text of all of them.
func TestBatchFailsAlone(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	script := "#!/bin/sh\ncase \"$1\" in --version) echo g++ fake 1; exit 0;; -print-prog-name=ld) exec g++ " +
		"\"$1\";; esac\n" +
		"for last in \"$@\"; do case \"$last\" in *.cpp) in=$last;; esac; done\ngrep -q u_bad \"$in\" && { echo no; exit " +
		"1; }\nexec g++ \"$@\"\n"
	path := filepath.Join(t.TempDir(), "g++fake")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o700))
	t.Setenv("CXX", path)
	c, _, err := findToolchain(background(t))
	require.NoError(t, err)
	if c.linker == "" {
		t.Skip("the linker is not called without the compiler on this system")
	}
	var units []*source.Unit
	for i := range 5 {
		out := "out"
		if i == 3 {
			out = "bad"
		}
		units = append(units, parse(t, fmt.Sprintf("kernel void k(global const float *a, global float *%s) { "+
			"%[1]s[get_global_id(0)] = %d; }", out, i)))
	}
	bins, errs := d.CompileAll(background(t), units, nil)
	for i, err := range errs {
		if i == 3 {
			var build *driver.BuildError
			require.ErrorAs(t, err, &build)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, float32(i), runOn(t, d, units[i], bins[i])[9])
	}
}

func TestCompileAllEndsWithItsContext(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	units := smallUnits(t)
	ctx, cancel := context.WithCancelCause(background(t))
	why := errors.New("enough")
	go func() {
		for ctx.Err() == nil {
			if found, _ := filepath.Glob(filepath.Join(tmp, buildPrefix+"*", "*")); len(found) > 0 {
				cancel(why)
			}
		}
	}()
	_, errs := d.CompileAll(ctx, units, nil)
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
			assert.ErrorIs(t, err, why)
			assert.NotErrorIs(t, err, driver.ErrCompile)
		}
	}
	assert.Positive(t, failed)
	left, err := os.ReadDir(tmp)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing is left behind")
}
