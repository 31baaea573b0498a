package tune

// The subjects of this package: each is an operation at the sizes where its choices decide. A choice that several
// subjects read is tried with the first of them that a program tunes.

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

func init() {
	for _, s := range catalog() {
		Register(s)
	}
}

// large are the choices of products in panels, and of those that pack less.
var large = []string{"cpu.gemm.depth", "cpu.gemm.panel", "cpu.gemm.cols", "cpu.gemm.chunk", "cpu.gemm.block",
	"cpu.gemm.tall", "cpu.gemm.tasks", "cpu.gemm.fetch", "cpu.gemm.direct", "cpu.gemm.strips"}

// catalog returns the subjects in the order in which they are tuned.
func catalog() []Subject {
	list := usual()
	for _, s := range seldom() {
		s.Seldom = true
		list = append(list, s)
	}
	return list
}

// usual are the subjects in which most programs spend their time.
func usual() []Subject {
	squares := []int{64, 128, 256, 512, 1024, 2048, 4096}
	return []Subject{
		{Name: "gemm f32", Reads: large, Points: each(squares, func(n int) Point { return product(runtime.F32, n, n, n) })},
		{Name: "gemm f64", Reads: large, Points: each(squares, func(n int) Point { return product(runtime.F64, n, n, n) })},
		{Name: "portable gemm f32", Reads: []string{"kernels.gemm"}, Points: each([]int{64, 256, 1024},
			func(n int) Point { return compiled(product(runtime.F32, n, n, n)) })},
		{Name: "gemm of few rows", Reads: []string{"cpu.gemm.few"}, Points: append(each([]int{1, 2, 4, 8, 16, 32},
			func(m int) Point { return product(runtime.F32, m, 4096, 4096) }), across(product(runtime.F32, 8, 512, 1024)),
			product(runtime.F32, 4, 128, 16384))},
		{Name: "conv2d f32", Reads: []string{"cpu.conv.room", "cpu.conv.deep", "cpu.conv.bare", "cpu.conv.copy",
			"cpu.conv.sums", "cpu.conv.tasks", "cpu.conv.outputs", "cpu.conv.small", "cpu.conv.beside", "cpu.conv.ranges",
			"cpu.conv.grain", "cpu.conv.dilated"}, Points: convolutions(
			image{64, 56, 64, 1, 1, 0, 1, 1}, image{3, 224, 64, 7, 2, 3, 1, 1}, image{3, 56, 16, 3, 1, 1, 1, 1},
			image{64, 28, 64, 3, 1, 4, 4, 1}, image{512, 7, 512, 1, 1, 0, 1, 1}, image{1024, 14, 256, 1, 1, 0, 1, 1},
			image{128, 28, 128, 3, 1, 1, 1, 32}, image{64, 56, 64, 3, 1, 1, 1, 64})},
		{Name: "conv2d by Winograd's method", Reads: []string{"cpu.winograd"}, Points: convolutions(
			image{64, 56, 64, 3, 1, 1, 1, 1}, image{64, 56, 64, 3, 2, 1, 1, 1}, image{64, 28, 64, 5, 1, 2, 1, 1},
			image{256, 14, 256, 3, 1, 1, 1, 1}, image{512, 7, 512, 3, 1, 1, 1, 1}, image{16, 28, 32, 3, 1, 1, 1, 1})},
		{Name: "transpose f32", Reads: []string{"cpu.transpose"}, Points: []Point{turn(4096, 4096), turn(512, 512),
			turn(64, 262144)}},
		{Name: "reduce f32", Reads: []string{"cpu.reduce"}, Points: []Point{reduction("reduce_sum", 1, 1<<22, 1),
			reduction("reduce_sum", 4096, 1024, 1), reduction("reduce_max", 1<<16, 64, 1),
			reduction("reduce_sum_columns", 1, 4096, 1024), reduction("reduce_sum_columns", 64, 1024, 64),
			reduction("reduce_sum_columns", 1, 1<<16, 16), reduction("reduce_argmax", 4, 1<<20, 1),
			reduction("reduce_argmax_columns", 1, 4096, 256), integers(reduction("reduce_argmax", 4, 1<<20, 1))}},
		{Name: "expressions", Reads: []string{"cpu.expr"}, Points: []Point{
			expression("several chains", 3, chainsMap, 1<<18), expression("several chains", 3, chainsMap, 1<<22),
			expression("functions", 2, functionsMap, 1<<16), expression("functions", 2, functionsMap, 1<<21),
			expression("a chain", 2, chainMap, 1<<22)}},
	}
}

// seldom are the others.
func seldom() []Subject {
	return []Subject{
		{Name: "gemm of few columns", Reads: []string{"cpu.gemm.dot"}, Points: []Point{product(runtime.F32, 512, 1, 512),
			product(runtime.F32, 512, 4, 512), product(runtime.F32, 200, 67, 128), product(runtime.F32, 16, 2, 256)}},
		{Name: "gemm of thin matrices", Reads: []string{"cpu.gemm.thin"}, Points: []Point{product(runtime.F32, 1, 12, 256),
			product(runtime.F32, 2, 16, 64), product(runtime.F32, 3, 8, 1024), product(runtime.F64, 2, 6, 256)}},
		{Name: "gemm of narrow matrices", Reads: []string{"cpu.gemm.narrow"}, Points: []Point{
			product(runtime.F32, 1024, 64, 8192), product(runtime.F32, 4096, 32, 2048), product(runtime.F32, 512, 64, 32768)}},
		{Name: "gemm f16", Reads: []string{"cpu.gemm.halves"}, Points: each([]int{64, 128, 256, 512},
			func(n int) Point { return product(runtime.F16, n, n, n) })},
		{Name: "gemm of integers", Reads: []string{"cpu.gemm.int"}, Points: []Point{product(runtime.I32, 256, 256, 256),
			product(runtime.I32, 512, 128, 512)}},
		{Name: "gemm in batches", Reads: []string{"cpu.gemm.batch"}, Points: []Point{batch(1024, 8), batch(512, 16),
			batch(128, 32)}},
		{Name: "gemv f32", Reads: []string{"cpu.gemv"}, Points: []Point{vector(1024, 1024), vector(8192, 1024),
			vector(1024, 8192), vector(200, 20000)}},
		{Name: "conv2d of images with gaps", Reads: []string{"cpu.conv.phases"}, Points: []Point{
			image{32, 14, 32, 3, 1, 1, 1, 1}.spread(2), image{32, 14, 32, 4, 1, 2, 1, 1}.spread(2)}},
		{Name: "conv2d with turned images", Reads: []string{"cpu.conv.turned"}, Points: []Point{
			image{16, 16, 32, 14, 1, 0, 1, 1}.of(32), image{16, 12, 64, 10, 1, 0, 1, 1}.of(32),
			image{8, 12, 128, 8, 1, 0, 1, 1}.of(32)}},
		{Name: "conv2d with long filters", Reads: []string{"cpu.conv.long"}, Points: convolutions(
			image{16, 30, 32, 28, 1, 0, 1, 1}, image{128, 8, 256, 8, 1, 0, 1, 1}, image{32, 18, 16, 14, 1, 0, 1, 1})},
		{Name: "softmax and norm f32", Reads: []string{"cpu.rows"}, Points: []Point{rows("softmax", 65536, 256),
			rows("softmax", 16384, 1024), rows("layer_norm", 65536, 256)}},
		{Name: "results past the caches", Reads: []string{"cpu.copy.past"}, Points: []Point{
			elements("activation", "relu", 1<<22), elements("activation", "relu", 24<<20),
			elements("arith", "add", 24<<20), turn(4096, 6144)}},
		{Name: "topk f32", Reads: []string{"cpu.topk"}, Points: []Point{topk(1, 1<<18, 10), topk(1, 1<<21, 10),
			topk(1, 1<<21, 500), topk(1, 1<<20, 2000), topk(4096, 1024, 10)}},
		{Name: "l2_distance", Reads: []string{"cpu.nearest.many"}, Points: []Point{distances("fp32", runtime.F32, 4),
			distances("fp32", runtime.F32, 8), distances("fp32", runtime.F32, 16), distances("int8", runtime.I8, 8)}},
		{Name: "nearest f32", Reads: []string{"cpu.nearest.block"}, Points: []Point{nearestOf(32, 1<<16, 64, 10),
			nearestOf(64, 1<<14, 128, 10), nearestOf(256, 1<<12, 128, 10)}},
		{Name: "sort, scan, segments", Reads: []string{"cpu.go.segments", "cpu.threads.grain"}, Points: []Point{
			sorted(64, 1024), sorted(1, 1<<18), scan(1024, 1024), segments(1024, 8, 64), segments(16384, 4, 16)}},
		{Name: "threads", Reads: []string{"cpu.threads.pay", "cpu.threads.operations", "cpu.threads.bytes",
			"cpu.threads.ranges", "cpu.threads.parts", "cpu.threads.least", "cpu.threads.most", "cpu.threads.linger",
			"cpu.threads.polls", "cpu.threads.spin", "cpu.threads.yield", "cpu.threads.sleep"}, Points: []Point{
			elements("activation", "relu", 1<<15), elements("activation", "relu", 1<<18), elements("activation", "gelu", 1<<15),
			elements("activation", "gelu", 1<<20), rows("softmax", 64, 256), product(runtime.F32, 96, 96, 96),
			product(runtime.F32, 200, 200, 200), product(runtime.F32, 1024, 1024, 1024), bytesProduct(256),
			blocks(1, 2048, 2048), ternary(1, 2048, 2048)}},
		{Name: "portable activation f32", Reads: []string{"cpu.threads.alone", "cpu.threads.help"}, Points: []Point{
			compiled(elements("activation", "relu", 1<<14)), compiled(elements("activation", "relu", 1<<17)),
			compiled(elements("activation", "gelu", 1<<14))}},
	}
}

func each(sizes []int, point func(n int) Point) (list []Point) {
	for _, n := range sizes {
		list = append(list, point(n))
	}
	return list
}

// launchOf is a launch of a kernel, "family/kernel" if the family has several, with definitions such as "T=f16" between
// spaces. A size among the arguments is a uint32. Each buffer counts once as read or written.
func launchOf(name, kernel, defines string, sizes []int, flops float64, args ...any) Point {
	p := Point{Name: name, Sizes: sizes, Flops: flops, Args: args}
	var several bool
	if p.Family, p.Kernel, several = strings.Cut(kernel, "/"); !several {
		p.Kernel = p.Family
	}
	for d := range strings.FieldsSeq(defines) {
		name, value, _ := strings.Cut(d, "=")
		p.Defines = append(p.Defines, source.Define{Name: name, Value: value})
	}
	for i, a := range args {
		switch a := a.(type) {
		case int:
			args[i] = uint32(a)
		case Buffer:
			p.Bytes += float64(a.Len * a.Type.Size())
		}
	}
	return p
}

// compiled is a launch of the portable text.
func compiled(p Point) Point {
	p.Portable = true
	return p
}

func numbers(t runtime.Type, n int) Buffer { return Buffer{Type: t, Len: n} }
func floats(n int) Buffer                  { return numbers(runtime.F32, n) }

func between(t runtime.Type, n int, least, most float64) Buffer {
	return Buffer{Type: t, Len: n, Least: least, Most: most}
}

// matrix has numbers as products take them: integers are small.
func matrix(t runtime.Type, n int) Buffer {
	if t.IsFloat() {
		return numbers(t, n)
	}
	return between(t, n, -100, 100)
}

// scalar returns a number as kernels take alpha and beta: in double precision where matrices are, and as an integer
// where these have integers.
func scalar(t runtime.Type, v float64) any {
	switch t {
	case runtime.F64:
		return v
	case runtime.I32, runtime.I8:
		return int32(v)
	}
	return float32(v)
}

func shape(sizes ...int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", "x"), "[]")
}

func products(m, n, k int) float64 { return 2 * float64(m) * float64(n) * float64(k) }

// product is a product of an m x k and a k x n matrix.
func product(t runtime.Type, m, n, k int) Point {
	name := fmt.Sprint(n)
	if m != n || n != k {
		name = shape(m, n, k)
	}
	return launchOf(name, "gemm", "T="+t.String(), []int{m, n}, products(m, n, k), m, n, k, scalar(t, 1),
		matrix(t, m*k), k, matrix(t, k*n), n, scalar(t, 0), numbers(t, m*n), n)
}

// across is a product whose right matrix is stored with its rows as columns.
func across(p Point) Point {
	p.Name += " transposed"
	p.Defines = append(p.Defines, source.Define{Name: "TRANS_B", Value: "1"})
	p.Args[7] = p.Args[2]
	return p
}

// batch has products of square matrices.
func batch(count, n int) Point {
	step := uint64(n * n)
	return launchOf(fmt.Sprintf("%d of %d", count, n), "gemm_batch", "", []int{count, n, n},
		float64(count)*products(n, n, n), n, n, n, float32(1), floats(count*n*n), n, floats(count*n*n), n, float32(0),
		floats(count*n*n), n, count, step, step, step)
}

// bytesProduct is a product of matrices of bytes.
func bytesProduct(n int) Point {
	bytes := between(runtime.I8, n*n, -128, 127)
	return launchOf("gemm_i8 "+fmt.Sprint(n), "gemm_i8", "", []int{n, n}, products(n, n, n), n, n, n, int32(1), bytes, n,
		bytes, n, int32(0), numbers(runtime.I32, n*n), n)
}

// blocks is a product with weights of 8 bits in blocks of 32, which have scales of 16 bits from 2⁻⁷ to 2. The bytes of
// activations are all 5, since their sums are an argument, too.
func blocks(m, n, k int) Point {
	const each = 5
	of := k / kernels.GemmQBlock
	return launchOf("gemm_q "+shape(m, n, k), "gemm_q", "BITS=8", []int{m, n}, products(m, n, k),
		between(runtime.U32, m*k/4, each*0x01010101, each*0x01010101), between(runtime.F32, m*of, 0.5, 2),
		between(runtime.I32, 2*m*of, each*16, each*16), between(runtime.U32, n*k/4, 0, 1<<32-1),
		between(runtime.U16, n*of, 0x2000, 0x3fff), floats(m*n), m, n, k)
}

// ternary is a product with weights of 2 bits.
func ternary(m, n, k int) Point {
	words := func(n int) Buffer { return between(runtime.U32, n, 0, 1<<32-1) }
	return launchOf("w2a8 "+shape(m, n, k), "w2a8", "", []int{m, n}, products(m, n, k), words(m*k/4),
		between(runtime.F32, m, 0.5, 2), between(runtime.I32, m, -2000, 2000), words(n*k/16), between(runtime.F32, n, -2, 2),
		floats(m*n), m, n, k)
}

// vector is a product of a transposed k x m matrix with a vector.
func vector(m, k int) Point {
	return launchOf(shape(m, k), "gemv", "TRANS_A=1", []int{m}, products(m, 1, k), m, k, float32(1), floats(m*k), m,
		floats(k), float32(0), floats(m))
}

// image is a convolution of square images: channels, side, filters, their side, stride, padding, dilation, groups.
type image struct{ c, side, k, filter, stride, pad, dilation, groups int }

const images = 8 // of a convolution

func convolutions(list ...image) (points []Point) {
	for _, i := range list {
		points = append(points, i.convolution())
	}
	return points
}

// convolution is one of the usual number of images.
func (i image) convolution() Point { return i.layer(images, 1) }

// of is a convolution of so many images.
func (i image) of(images int) Point { return i.layer(images, 1) }

// spread is a convolution of images whose elements lie so far apart, with zeros between them.
func (i image) spread(step int) Point { return i.layer(images, step) }

func (i image) layer(images, step int) Point {
	out := kernels.ConvOut((i.side-1)*step+1, i.filter, i.stride, i.pad, i.pad, i.dilation)
	args := []any{images, i.c, i.side, i.side, i.k, i.filter, i.filter, i.stride, i.stride, i.pad, i.pad, i.dilation,
		i.dilation, i.groups, out, out}
	weights := i.k * i.c / i.groups * i.filter * i.filter
	args = append(args, floats(images*i.c*i.side*i.side), floats(weights), floats(1), floats(images*i.k*out*out))
	name := fmt.Sprintf("%s by %s", shape(i.c, i.side, i.k), shape(i.filter, i.filter))
	for _, part := range []struct {
		name     string
		n, usual int
	}{{"stride", i.stride, 1}, {"dilation", i.dilation, 1}, {"groups", i.groups, 1}, {"step", step, 1}} {
		if part.n != part.usual {
			name += fmt.Sprintf(" %s %d", part.name, part.n)
		}
	}
	defines := ""
	if step > 1 {
		defines = fmt.Sprintf("SPREAD_H=%d SPREAD_W=%d", step, step)
	}
	flops := 2 * float64(images*weights*out*out) / float64(step*step)
	return launchOf(name, "conv2d", defines, []int{images, i.groups, i.k / i.groups, out * out}, flops, args...)
}

func turn(rows, cols int) Point {
	return launchOf(shape(rows, cols), "transpose", "", []int{rows, cols}, 0, floats(rows*cols), floats(rows*cols), rows,
		cols)
}

func reduction(kernel string, outer, axis, inner int) Point {
	results, sizes := floats(outer*inner), []int{outer, inner}
	if strings.Contains(kernel, "arg") {
		results = numbers(runtime.U32, outer*inner)
	}
	if strings.HasSuffix(kernel, "columns") {
		sizes = []int{outer * inner}
	}
	return launchOf(kernel+" "+shape(outer, axis, inner), "reduce/"+kernel, "", sizes, float64(outer*axis*inner),
		floats(outer*axis*inner), results, outer, axis, inner)
}

// integers is a reduction of integers of 32 bits.
func integers(p Point) Point {
	p.Name += " i32"
	p.Defines = append(p.Defines, source.Define{Name: "T", Value: "i32"})
	p.Args[0] = matrix(runtime.I32, p.Args[0].(Buffer).Len)
	return p
}

func rows(kernel string, rows, n int) Point {
	name, sizes, x := kernel+" "+shape(rows, n), []int{rows}, floats(rows*n)
	if kernel == "softmax" {
		return launchOf(name, kernel, "", sizes, 0, x, x, rows, n)
	}
	return launchOf(name, "norm/"+kernel, "", sizes, 0, x, floats(n), floats(n), x, rows, n, float32(1e-5))
}

// elements is a kernel that computes each of n elements of a result from one of one input or, in arith, of two.
func elements(family, kernel string, n int) Point {
	args := []any{floats(n), floats(n), uint64(n)}
	if family == "arith" {
		args = append([]any{floats(n)}, args...)
	}
	return launchOf(fmt.Sprintf("%s %d", kernel, n), family+"/"+kernel, "", []int{n}, 0, args...)
}

// Expressions in the form of package kernels/expr.
const (
	// chainMap is (a + b)·a - b.
	chainMap = "input.f32.1;input.f32.0;add.f32.0,1;mul.f32.2,1;sub.f32.3,0;out.f32.4"
	// chainsMap is e^u·(c + u) with u = a·b.
	chainsMap = "input.f32.1;input.f32.0;mul.f32.0,1;input.f32.2;add.f32.2,3;exp.f32.2;mul.f32.4,5;out.f32.6"
	// functionsMap is log(1 + |a|) where a < b, and otherwise sin(b).
	functionsMap = "input.f32.0;input.f32.1;lt.bool.0,1;abs.f32.0;log1p.f32.3;sin.f32.1;select.f32.2,4,5;out.f32.6"
)

func expression(name string, inputs int, text string, n int) Point {
	var args []any
	for range inputs + 1 {
		args = append(args, floats(n))
	}
	return launchOf(fmt.Sprintf("%s %d", name, n), "expr/map", "RANK=0 MAP="+text, []int{n}, 0, append(args, uint64(n))...)
}

func topk(rows, n, k int) Point {
	return launchOf(fmt.Sprintf("%d of %s", k, shape(rows, n)), "topk", "", []int{rows}, 0, floats(rows*n), floats(rows*k),
		numbers(runtime.U32, rows*k), rows, n, k)
}

// distances are those of some queries from many vectors.
func distances(kernel string, t runtime.Type, queries int) Point {
	const vectors, dim = 1 << 14, 128
	sizes := []int{queries, vectors}
	return launchOf(kernel+" "+shape(queries, vectors, dim), "l2_distance/l2_distance_"+kernel, "", sizes,
		1.5*products(queries, vectors, dim), matrix(t, queries*dim), matrix(t, vectors*dim), floats(queries*vectors), queries,
		vectors, dim)
}

func nearestOf(queries, vectors, dim, k int) Point {
	return launchOf(fmt.Sprintf("%d of %s", k, shape(queries, vectors, dim)), "nearest", "", []int{1, queries},
		1.5*products(queries, vectors, dim), floats(queries*dim), floats(vectors*dim), floats(queries*k),
		numbers(runtime.U32, queries*k), queries, vectors, dim, k, 1)
}

func sorted(rows, n int) Point {
	places := between(runtime.U32, rows*n, 0, float64(n))
	return launchOf("sort_blocks "+shape(rows, n), "sort_pairs/sort_blocks", "", []int{rows, n}, 0, floats(rows*n), places,
		floats(rows*n), places, rows, n)
}

func scan(rows, n int) Point {
	return launchOf("scan_sum "+shape(rows, n), "scan/scan_sum", "", []int{rows, 1}, 0, floats(rows*n), floats(1),
		floats(rows*n), rows, n, 1)
}

// segments are sums of so many rows on average each, of n elements.
func segments(count, rows, n int) Point {
	id := Buffer{Type: runtime.U32, Len: count * rows, Least: 0, Most: float64(count - 1), Sorted: true}
	return launchOf("segment_add "+shape(count, rows, n), "segment/segment_add", "ORDER=0", []int{count * n}, 0,
		floats(count*rows*n), id, numbers(runtime.U32, 1), floats(count*n), count*rows, count*rows, count, n)
}
