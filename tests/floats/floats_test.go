package floats

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime"
	_ "github.com/concord-compute/concord/runtime/all"
	"github.com/concord-compute/concord/source"
)

// widths returns the numbers of lanes that are tried for a format.
func widths(f *format) []int {
	switch {
	case os.Getenv(variable) != "":
		return []int{1, 2, 3, 4, 8, 16}
	case f.scalar == "float":
		return []int{1, 4}
	}
	return []int{1}
}

// TestForms runs every form on every device of this machine and build, and on the CPU with each
// host compiler.
func TestForms(t *testing.T) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	devices := slices.Clone(s.Config().Required)
	probes, err := s.Discover(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	for _, p := range probes {
		for _, d := range p.Devices {
			if p.Backend != "cpu" && !slices.Contains(devices, d.ID) {
				devices = append(devices, d.ID)
			}
		}
	}
	for _, compiler := range []string{"g++", "clang++"} {
		t.Run("cpu:0 by "+compiler, func(t *testing.T) {
			if _, err := exec.LookPath(compiler); err != nil {
				t.Skip(err)
			}
			t.Setenv("CXX", compiler)
			everyFormat(t, "cpu:0")
		})
	}
	for _, d := range devices {
		if strings.Contains(d, ":") && !strings.HasPrefix(d, "cpu:") {
			t.Run(d, func(t *testing.T) { everyFormat(t, d) })
		}
	}
}

func everyFormat(t *testing.T, device string) {
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	d, err := s.Open(t.Context(), device)
	require.NoError(t, err)
	t.Run("conversions", func(t *testing.T) { conversions(t, d) })
	for i := range formats {
		f := &formats[i]
		for _, width := range widths(f) {
			t.Run(fmt.Sprint(f.scalar, width), func(t *testing.T) {
				if has := d.Features(); f.scalar == "double" && !has.FP64 || f.scalar == "half" && !has.FP16 {
					t.Skip("the device has no " + f.scalar)
				}
				check(t, d, f, width)
			})
		}
	}
}

// check runs all forms of one type.
func check(t *testing.T, d *runtime.Device, f *format, width int) {
	list := forms(width == 1)
	unit, err := source.Parse(program(f, width, list), source.Options{Name: "forms.cl", Features: d.Features()})
	require.NoError(t, err)
	p, err := d.Program(t.Context(), unit)
	if errors.Is(err, runtime.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	in := combinations(f, width)
	n := len(in[0]) / width
	args := []any{uint32(n)}
	for _, v := range in {
		b, err := d.Alloc(elements[f.scalar], len(v))
		require.NoError(t, err)
		require.NoError(t, write(t.Context(), b, f, v))
		args = append(args, b)
	}
	out, err := d.Alloc(elements[f.scalar], len(in[0]))
	require.NoError(t, err)
	wrong := 0
	for k := range list {
		kernel, err := p.Kernel(fmt.Sprint("form", k))
		require.NoError(t, err)
		require.NoError(t, d.Stream().Launch(kernel, runtime.Items(n), append(args, out)...))
		got, err := read(t.Context(), out, f)
		require.NoError(t, err)
		wrong += compare(t, f, width, &list[k], in, got, strings.HasPrefix(d.Info().ID, "cpu:"))
	}
	assert.Zero(t, wrong, "of %d forms", len(list))
}

var literal = regexp.MustCompile(`'(-?[0-9.]+)'`)

// program is one kernel per form.
func program(f *format, width int, list []form) string {
	typ, load, store := f.scalar, "p[i]", "p[i] = v"
	if width > 1 {
		typ = fmt.Sprint(f.scalar, width)
		load, store = fmt.Sprintf("vload%d(i, p)", width), fmt.Sprintf("vstore%d(v, i, p)", width)
	}
	b := &strings.Builder{}
	for _, define := range []string{"T " + typ, "S " + f.scalar, "S2 " + f.scalar + "2", "S3 " + f.scalar + "3",
		"S4 " + f.scalar + "4"} {
		fmt.Fprintf(b, "#define %s\n", define)
	}
	if f.scalar == "half" {
		b.WriteString("#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n")
	}
	fmt.Fprintf(b, "T load(global const S *p, uint i) { return %s; }\nvoid store(global S *p, uint i, T v) { %s; }\n",
		load, store)
	b.WriteString("T negative(T v) { return -v; }\nT times(T v, S s) { return v * s; }\n")
	for k, form := range list {
		body := form.before + " store(o, i, " + form.text + ");"
		body = literal.ReplaceAllStringFunc(body, func(s string) string {
			s = strings.Trim(s, "'")
			if !strings.Contains(s, ".") {
				s += ".0"
			}
			return s + f.suffix
		})
		fmt.Fprintf(b, `kernel void form%d(uint n, global const S *a, global const S *b, global const S *c, global S *o) {
	uint i = get_global_id(0);
	if (i >= n)
		return;
	T x = load(a, i), y = load(b, i), z = load(c, i);
	%s
}
`, k, body)
	}
	return b.String()
}

// combinations returns all triples of values; unused lanes of the last item repeat the first
// triple.
func combinations(f *format, width int) (in [3][]float64) {
	v := f.values()
	for _, x := range v {
		for _, y := range v {
			for _, z := range v {
				in[0], in[1], in[2] = append(in[0], x), append(in[1], y), append(in[2], z)
			}
		}
	}
	for i := 0; len(in[0])%width != 0; i++ {
		for k := range in {
			in[k] = append(in[k], in[k][i])
		}
	}
	return in
}

// compare reports the first difference of a form. Devices other than the CPU may treat denormals as
// zero.
func compare(t *testing.T, f *format, width int, e *form, in [3][]float64, got []float64, denormals bool) int {
	for i, g := range got {
		v := arguments{in[0][i], in[1][i], in[2][i], i/width%2 == 1}
		want := f.round(e.value(f, &v))
		if want != want && g != g || f.bits(want) == f.bits(g) {
			continue
		}
		if !denormals && slices.ContainsFunc([]float64{v.x, v.y, v.z, want, g}, f.tinyNumber) {
			continue
		}
		t.Errorf("%s %s is %v (%#x), not %v (%#x), for x = %v, y = %v, z = %v",
			e.before, e.text, g, f.bits(g), want, f.bits(want), v.x, v.y, v.z)
		return 1
	}
	return 0
}
