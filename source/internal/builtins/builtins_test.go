package builtins

import (
	"strings"
	"testing"

	"github.com/concord-compute/concord/source/internal/token"
	"github.com/concord-compute/concord/source/internal/tree"
)

// parseB parses a type in a test's table: "float4", "local int*", "const half*", "size".
func parseB(t *testing.T, s string) Type {
	t.Helper()
	var b Type
	for _, w := range strings.Fields(strings.ReplaceAll(s, "*", " *")) {
		switch w {
		case "*":
			b.Ptr = true
		case "local":
			b.Space = tree.Local
		case "global":
			b.Space = tree.Global
		case "const":
			b.Const = true
		case "event":
			b.Event = true
		case "?":
		case "none":
			b.None = true
		default:
			name := strings.TrimRight(w, "0123456789")
			b.Width = 1
			if n := w[len(name):]; n != "" {
				b.Width = map[string]int{"2": 2, "3": 3, "4": 4, "8": 8, "16": 16}[n]
			}
			if name == "size" {
				name = "ulong"
			}
			for k := tree.Void; k <= tree.Struct; k++ {
				if k.String() == name {
					b.Kind = k
				}
			}
			if b.Kind == tree.Void && name != "void" {
				t.Fatalf("no type %q", w)
			}
		}
	}
	return b
}

func (t Type) show() string {
	if t.None {
		return "none"
	}
	s := tree.Vector(t.Kind, t.Lanes()).String()
	if t.Event {
		s = "event"
	}
	if t.Const {
		s = "const " + s
	}
	if t.Ptr {
		s += "*"
		if t.Space != tree.Private {
			s = t.Space.String() + " " + s
		}
	}
	return s
}

func TestBuiltinResolve(t *testing.T) {
	for _, c := range []struct{ call, want string }{
		{"pow(float,int)", "float(float, float)"},
		{"pow(float,double)", "ambiguous"},
		{"pow(float4,float)", "float4(float4, float4)"},
		{"sqrt(int)", "ambiguous"},
		{"sqrt(double2)", "double2(double2)"},
		{"max(int,uint)", "ambiguous"},
		{"max(short,short)", "short(short, short)"},
		{"max(uchar,int)", "ambiguous"},
		{"max(float4,int)", "float4(float4, float)"},
		{"max(long,int)", "ambiguous"},
		{"min(ulong,int)", "ambiguous"},
		{"fmax(float2,float)", "float2(float2, float)"},
		{"fmin(float,float)", "float(float, float)"},
		{"clamp(float4,float,float)", "float4(float4, float, float)"},
		{"clamp(float4,float4,float4)", "float4(float4, float4, float4)"},
		{"clamp(int,int,int)", "int(int, int, int)"},
		{"clamp(uchar4,int,int)", "uchar4(uchar4, uchar, uchar)"},
		{"clamp(float,int,int)", "ambiguous"},
		{"mix(float4,float4,float)", "float4(float4, float4, float)"},
		{"step(float,float4)", "float4(float, float4)"},
		{"smoothstep(float,float,float2)", "float2(float, float, float2)"},
		{"fract(float2,float2*)", "float2(float2, float2*)"},
		{"fract(float,local float*)", "float(float, local float*)"},
		{"fract(float2,float*)", ""},
		{"frexp(double,int*)", "double(double, int*)"},
		{"frexp(float4,global int4*)", "float4(float4, global int4*)"},
		{"ldexp(float4,int)", "float4(float4, int)"},
		{"ldexp(float4,int4)", "float4(float4, int4)"},
		{"ldexp(float,uint)", "float(float, int)"},
		{"ilogb(double3)", "int3(double3)"},
		{"remquo(float,float,int*)", "float(float, float, int*)"},
		{"nan(uint)", "float(uint)"},
		{"nan(ulong2)", "double2(ulong2)"},
		{"nan(int)", "ambiguous"},
		{"native_sin(double)", "float(float)"},
		{"half_powr(float,int)", "float(float, float)"},
		{"abs(char)", "uchar(char)"},
		{"abs(int4)", "uint4(int4)"},
		{"abs(float)", "ambiguous"},
		{"abs(bool)", "uint(int)"},
		{"abs_diff(uint,int)", "ambiguous"},
		{"upsample(char,uchar)", "short(char, uchar)"},
		{"upsample(uint2,uint2)", "ulong2(uint2, uint2)"},
		{"upsample(int,int)", "long(int, uint)"},
		{"mul24(short,short)", "int(int, int)"},
		{"mul24(uint,uint)", "uint(uint, uint)"},
		{"rotate(uchar,int)", "ambiguous"},
		{"dot(float4,float4)", "float(float4, float4)"},
		{"dot(float8,float8)", ""},
		{"cross(float3,float3)", "float3(float3, float3)"},
		{"cross(float2,float2)", ""},
		{"length(double)", "double(double)"},
		{"isequal(float,float)", "int(float, float)"},
		{"isequal(double,double)", "int(double, double)"},
		{"isnan(double2)", "long2(double2)"},
		{"isless(float4,float4)", "int4(float4, float4)"},
		{"any(char8)", "int(char8)"},
		{"select(float4,float4,int4)", "float4(float4, float4, int4)"},
		{"select(float4,float4,uint4)", "float4(float4, float4, uint4)"},
		{"select(float4,float4,short4)", ""},
		{"select(float4,float4,float4)", ""},
		{"select(double,double,int)", "ambiguous"},
		{"select(uchar,uchar,uint)", "ambiguous"},
		{"bitselect(float,float,float)", "float(float, float, float)"},
		{"vload4(int,global const float*)", "float4(ulong, global const float*)"},
		{"vload3(size,local uchar*)", "uchar3(ulong, local uchar*)"},
		{"vstore4(float4,int,global float*)", "none(float4, ulong, global float*)"},
		{"vstore4(float3,int,global float*)", ""},
		{"vload_half(int,global half*)", "float(ulong, global half*)"},
		{"vload_half4(int,global half*)", "float4(ulong, global half*)"},
		{"vloada_half3(int,global half*)", "float3(ulong, global half*)"},
		{"vstore_half(float,int,global half*)", "none(float, ulong, global half*)"},
		{"vstore_half_rtz(double,int,global half*)", "none(double, ulong, global half*)"},
		{"vstore_half4_rte(float4,int,global half*)", "none(float4, ulong, global half*)"},
		{"vstorea_half8(double8,int,global half*)", "none(double8, ulong, global half*)"},
		{"vstore_half4(float2,int,global half*)", ""},
		{"get_global_id(int)", "ulong(uint)"},
		{"barrier(uint)", "none(uint)"},
		{"atomic_add(global int*,int)", "int(global int*, int)"},
		{"atomic_add(local uint*,int)", "uint(local uint*, uint)"},
		{"atomic_add(global float*,float)", ""},
		{"atomic_xchg(global float*,int)", "float(global float*, float)"},
		{"atomic_inc(global int*)", "int(global int*)"},
		{"atomic_cmpxchg(global int*,int,int)", "int(global int*, int, int)"},
		{"atom_add(global ulong*,int)", "ulong(global ulong*, ulong)"},
		{"atomic_add(global long*,int)", ""},
		{"shuffle(float4,uint2)", "float2(float4, uint2)"},
		{"shuffle2(uchar8,uchar8,uchar16)", "uchar16(uchar8, uchar8, uchar16)"},
		{"shuffle(float4,int4)", ""},
		{"shuffle(float4,uint3)", ""},
		{"shuffle(float3,uint4)", ""},
		{"any(uchar8)", ""},
		{"async_work_group_copy(local float*,global const float*,int,event)",
			"event(local float*, global const float*, ulong, event)"},
		{"async_work_group_copy(local float4*,global const float4*,int,int)",
			"event(local float4*, global const float4*, ulong, event)"},
		{"async_work_group_strided_copy(global int*,local int*,int,int,event)",
			"event(global int*, local int*, ulong, ulong, event)"},
		{"wait_group_events(int,event*)", "none(int, event*)"},
		{"printf(const char*,float4,int)", "int(const char*, float4, int)"},
		{"max(float4,?)", ""},
		{"max(?,?)", ""},
		{"max(float4,float2)", ""},
		{"max(int,char)", "ambiguous"},
		{"select(char,int,uchar)", "ambiguous"},
		{"max(char,char)", "char(char, char)"},
		{"pow(half,float)", "ambiguous"},
		{"pow(double,int)", "double(double, double)"},
		{"ldexp(float,float)", "float(float, int)"},
		{"get_global_id(float)", "ulong(uint)"},
		{"native_sin(int)", "float(float)"},
		{"fma(float4,float,int)", "float4(float4, float4, float4)"},
		{"max(float)", ""},
		{"mad(float,float,double)", "ambiguous"},
		{"sincos(float4,float4*)", "float4(float4, float4*)"},
		{"modf(half,half*)", "half(half, half*)"},
	} {
		name, rest, _ := strings.Cut(c.call, "(")
		b, ok := Lookup(name)
		if !ok {
			t.Errorf("%s: not in the table", name)
			continue
		}
		var args []Type
		for _, a := range strings.Split(strings.TrimSuffix(rest, ")"), ",") {
			args = append(args, parseB(t, a))
		}
		got, fitting := b.Resolve(args, &token.Features{FP64: true, FP16: true})
		s := ""
		if len(fitting) > 1 {
			s = "ambiguous"
		}
		if len(fitting) == 1 {
			var ps []string
			for _, p := range got.Params {
				ps = append(ps, p.show())
			}
			s = got.Result.show() + "(" + strings.Join(ps, ", ") + ")"
		}
		if s != c.want {
			t.Errorf("%s: got %q, want %q (%s)", c.call, s, c.want, b.Usage())
		}
	}
}
