package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/concord-compute/concord/source"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planted are targets with one mistake each: cpu:0 gets a changed text, or its compiler a rendering
// that sed has changed.
var planted = []*Target{
	plant("swizzle", func(text string) string { return strings.ReplaceAll(text, ".even", ".odd") }),
	plant("atomic", define("atomic_max atomic_min")),
	plant("barrier", define("barrier(x)")),
	plant("inexact", define("exp(x) (exp(x) * 1.00001f)", "sin(x) (sin(x) * 0.99999f)", "log(x) (log(x) * 1.00001f)",
		"cbrt(x) (cbrt(x) * 1.00001f)")),
	plantCode("shift", " >> ", `s/return T(a >> (cc_uint(n) & (sizeof(T) \* 8 - 1)));/return T(a >> n);/`),
	plantCode("zero", "trunc(",
		`s/^CC_M1(trunc)$/CC_FN float cc_m_trunc(float x) { return __builtin_truncf(x) + 0.0f; } CC_FN double cc_m_trunc(double x) { return __builtin_trunc(x) + 0.0; }/`),
	plantCode("nan", "_sat", `s/if (!(x == x))$/if (false)/`),
	plantCode("hadd", "rhadd(", `s/return T((x | y) - ((x ^ y) >> 1));/return T((x \& y) + ((x ^ y) >> 1));/`),
}

func plant(name string, f func(string) string) *Target {
	return &Target{Name: "planted-" + name, Backend: "cpu", Device: "cpu:0", Plant: f}
}

// define puts macros in front of programs that use one of their names.
func define(macros ...string) func(string) string {
	return func(text string) string {
		if !slices.ContainsFunc(macros, func(m string) bool {
			return strings.Contains(text, m[:strings.IndexAny(m, "( ")]+"(")
		}) {
			return text
		}
		return "#define " + strings.Join(macros, "\n#define ") + "\n" + text
	}
}

// plantCode changes the rendering of the programs that contain a word, by sed.
func plantCode(name, word, sed string) *Target {
	t := &Target{Name: "planted-" + name, Backend: "cpu", Device: "cpu:0"}
	code[t] = [2]string{word, sed}
	return t
}

var code = map[*Target][2]string{}

// wrongCompiler writes a C++ compiler that changes its input. A target's compiler does not get the
// environment of the target's process, so each target has its own compiler.
func wrongCompiler(t *testing.T, sed string) string {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	require.NoError(t, os.WriteFile(script, []byte(sed+"\n"), 0o600))
	file := filepath.Join(dir, "wrong-g++")
	text := fmt.Sprintf("#!/bin/sh\nfor f; do case $f in *.cpp) sed -i -f %q \"$f\";; esac; done\nexec %q \"$@\"\n",
		script, compiler)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o700))
	return file
}

// early are the planted mistakes that the first few programs find.
var early = []string{"planted-hadd", "planted-shift"}

// TestPlanted: every planted mistake is found, and the first program that finds it is reduced.
func TestPlanted(t *testing.T) {
	dir, err := filepath.Abs(root)
	require.NoError(t, err)
	cpu := Targets(dir)[0]
	if reason := Absent(cpu, dir); reason != "" {
		t.Skip(reason)
	}
	pool := &Pool{}
	defer pool.Close()
	left := slices.Clone(planted)
	if os.Getenv(variableTime) == "" { // finding the others takes more programs
		left = slices.DeleteFunc(left, func(t *Target) bool { return !slices.Contains(early, t.Name) })
	}
	for _, target := range left {
		if target.Plant == nil {
			target.Env = []string{"CXX=" + wrongCompiler(t, code[target][1])}
		}
	}
	var found []*Difference
	for seed := uint64(0); len(left) > 0 && seed < 60; seed++ {
		p := Generate(seed)
		left = slices.DeleteFunc(left, func(target *Target) bool {
			if target.Plant != nil && target.Plant(p.Text()) == p.Text() || !strings.Contains(p.Text(), code[target][0]) {
				return false
			}
			d := pool.Try(p, []*Target{cpu, target})
			if d == nil {
				return false
			}
			t.Log(d)
			assert.GreaterOrEqual(t, d.At, 0, "it is about values")
			found = append(found, d)
			return true
		})
	}
	for _, target := range left {
		t.Errorf("%s was not found", target.Name)
	}
	require.NotEmpty(t, found)
	whole := len(found[0].Program.Text())
	small := Reduce(pool, found[0], 15*time.Second)
	assert.Less(t, len(small.Program.Text()), whole)
	assert.Len(t, small.Program.Launches, 1)
	assert.NotNil(t, pool.Try(small.Program, small.Targets[:]), "the reduced program differs, too")
}

// TestGenerate: a seed always makes the same program, and the front end and all renderers accept
// every program.
func TestGenerate(t *testing.T) {
	texts := map[string]bool{}
	features := source.Portable
	features.FP16 = true
	for seed := range uint64(40) {
		p := Generate(seed)
		require.Equal(t, p.Describe(), Generate(seed).Describe())
		texts[p.Text()] = true
		unit, err := source.Parse(p.Text(), source.Options{Features: &features})
		require.NoError(t, err, "seed %d", seed)
		for _, target := range []source.Target{source.Host, source.CUDA, source.HIP} {
			_, err := unit.Render(target)
			require.NoError(t, err, "seed %d", seed)
		}
		kernels, _ := p.counts()
		assert.Equal(t, kernelsPerProgram+1, kernels, "and that of the constants")
		for _, l := range p.Launches {
			k, ok := unit.Kernel(l.Kernel)
			require.True(t, ok)
			require.Len(t, l.Args, len(k.Params))
		}
	}
	assert.Len(t, texts, 40)
}

// TestCompare: allowed differences are not reported, and all others are.
func TestCompare(t *testing.T) {
	p := func(k kind, ulps ...int) *Program {
		return &Program{Launches: []Launch{{Kernel: "k", Args: []Arg{{Name: "x", Out: true, kind: k, ulps: ulps}}}}}
	}
	one := func(b ...byte) *Result { return &Result{Outputs: [][][]byte{{b}}} }
	nan, other := one(0, 0, 0xc0, 0x7f), one(1, 2, 0xc0, 0xff)
	plus, minus := one(0, 0, 0, 0), one(0, 0, 0, 0x80)
	a, b, c := one(0, 0, 0x80, 0x3f), one(5, 0, 0x80, 0x3f), one(6, 0, 0x80, 0x3f)
	for name, differ := range map[string]struct {
		p    *Program
		x, y *Result
		want bool
	}{
		"payloads":       {p(kFloat), nan, other, false},
		"payloads' bits": {p(kUInt), nan, other, true},
		"zeros":          {p(kFloat), plus, minus, true},
		"zeros, inexact": {p(kFloat, 2), plus, minus, false},
		"within":         {p(kFloat, 2), a, b, false},
		"too far":        {p(kFloat, 2), a, c, true},
		"exact":          {p(kFloat), a, b, true},
		"NaN or not":     {p(kFloat, 16), a, nan, true},
		"one fails":      {p(kFloat), a, &Result{Err: "build"}, true},
	} {
		what, _ := Compare(differ.p, differ.x, differ.y, false)
		assert.Equal(t, differ.want, what != "", "%s: %s", name, what)
	}
}
