package tests

// Numbers that were chosen by measuring are choices (runtime/choice). These tests find others in the sources.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	_ "github.com/concord-compute/concord/ann"
	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/tune"
)

// Go files of the CPU that compute, and the pass of tensor that decides what is stored. A number of 3 or more counts
// as a threshold if it is compared by order, if it limits something (min, max, even), if something is divided by it, or
// if it has a name. What a call or an index is given does not count, nor do the files of choices.
var goFacts = map[string]string{
	"ann/codes.go 128":                     "the longest code, which options have, and kept memory",
	"ann/codes.go 14 20":                   "how codes are made, and the limit of an option, as powers of 2",
	"ann/codes.go cut 32":                  "bits of a distance",
	"ann/codes.go shortlist 1e-30":         "the smallest step that is divided by",
	"ann/graph.go 16 4":                    "how a graph is followed, on which depends what is found",
	"ann/graph.go 32":                      "layers of a graph, which files have",
	"ann/graph.go take 4":                  "bytes of an element",
	"ann/graph_insert.go 1000":             "the end of a walk",
	"ann/graph_insert.go 1e-5":             "directions that are the same",
	"ann/hnsw_search.go 50":                "the default of an option, on which depends what is found",
	"ann/hnsw_search.go search 10 50":      "from how few vectors on all are compared, on which depends what is found",
	"ann/ivf.go 16 24 256 4096":            "how lists are made, on which depends what is found",
	"ann/ivf_search.go probes 10 50":       "from how few vectors on all are compared, on which depends what is found",
	"ann/ivf_train.go 10":                  "how lists are made, on which depends what is found",
	"ann/ivf_train.go 256":                 "the size of kept memory",
	"ann/ivf_train.go due 16":              "how lists are made, on which depends what is found",
	"ann/ivf_train.go usualLists 4":        "the default of an option, on which depends what is found",
	"ann/ivf_train.go move 1024":           "how lists are made, on which depends what is found",
	"ann/ivf_train.go stored 4 20":         "bytes of memory for rows that are read once",
	"ann/rank.go follows 32":               "bits of a distance",
	"ann/rank.go work 32":                  "bits of a distance",
	"ann/storesearch.go listed 20":         "MiB",
	"ann/work.go grow 16":                  "a buffer is not empty",
	"ann/work.go together 24":              "bounds of memory, as a power of 2",
	"backend.go 4096":                      "the executor's limit of items in a group, which kernels may rely on",
	"backend.go 20":                        "the local memory that a device promises, as a power of 2",
	"batch.go 64 8 20":                     "bounds of the compiler's memory, which no launch depends on",
	"codes.go 127":                         "the format of codes",
	"codes.go CodeTable 1e-30":             "the smallest step that is divided by",
	"compiler.go 2000":                     "bytes of a message",
	"gemm.go 11 12":                        "positions of arguments",
	"gemm_int.go 64":                       "the columns of the vector function",
	"gemm_int.go 24":                       "how long a launch cannot be stopped, as a power of 2",
	"gemm_int.go simdGemmInt 64":           "a block is not empty",
	"go_elem.go sumOf 128 8":               "the error of sums, which the catalog's bounds are for",
	"go_gemm_q.go goQuantizeBlocks 127":    "the format of blocks",
	"go_gemm_q.go goQuantizeBlocks 31":     "the format of floats",
	"go_gemm_q.go goQuantizeBlocks 16":     "the format of blocks",
	"go_gemm_q.go gemmQIntegers 4 8":       "the format of blocks",
	"go_gemv.go goGemv 16":                 "elements of a cache line, which no two goroutines write",
	"go_matrix.go 28":                      "how long a launch cannot be stopped, as a power of 2",
	"go_matrix.go panelProducts 4":         "the rows of the innermost function",
	"go_matrix.go goL2Int 16129":           "the unit of distances of bytes",
	"go_nearest.go 0x1p-10 0x1p-40 0x1p60": "the error of cosines, which the catalog's bounds are for",
	"go_nearest.go preciseCosine 0.5":      "the same",
	"go_segment.go goSegment 128":          "the error of sums, which the catalog's bounds are for",
	"go_w2a8.go goQuantizeRows 31":         "the format of floats",
	"go_w2a8.go goW2A8 4 64":               "the format of ternary weights",
	"launch.go 128":                        "the alignment of OpenCL's widest type",
	"launch.go space 4":                    "memory of a launch that is kept, which has room for most arguments",
	"memory.go 64 128":                     "alignments",
	"memory.go 8192 10":                    "mappings that a process may have",
	"memory.go 16 20":                      "the memory of the system is read from that size on",
	"memory.go 63":                         "the highest bit of a handle",
	"memory.go accessible 3 4":             "bytes of a word",
	"memory_other.go 40":                   "the address space",
	"memory_unix.go 4 20":                  "two huge pages; memory is mapped before a device has choices",
	"run.go MultiplyAdds 1e6 10 100 4":     "the length of a measurement",
	"scratch.go 4 256 20":                  "bounds of the memory that is kept",
	"shim.go 0xd1d":                        "an address",
	"shim.go runHost 30":                   "the range of a number",
	"shim.go nearest 64 10":                "the largest page of memory on any system",
	"simd_conv.go plan 4 10":               "registers of a half tile; KiB",
	"simd_conv.go plan 64":                 "registers of AVX-512, whose strips are too wide for the other form",
	"simd_conv_dilated.go dilated 100":     "percent",
	"simd_conv_dilated.go table 3":         "words of a part",
	"simd_conv_long.go planLong 6":         "a multiple of the filters of every vector function",
	"simd_conv_long.go long 16":            "bounds of memory, as a power of 2",
	"simd_conv.go steps 8":                 "bytes of a number",
	"simd_conv_turned.go planTurned 100":   "percent",
	"simd_expr.go 8 4 128 96 10":           "places of words and sizes of memory that C has, too",
	"simd_few.go 16 12":                    "rows of the vector functions",
	"simd_few.go runFew 10":                "KiB",
	"simd_gemm.go compute 4":               "registers of the widest tile of few rows",
	"simd_gemm.go runNarrow 16":            "elements of a whole register of every type",
	"simd_gemm_i8.go 31":                   "how long a launch cannot be stopped, as a power of 2",
	"simd_gemm_i8.go runGemmI8 4 64":       "bytes of a word; a block is not empty",
	"simd_gemm_q.go bindGemmQ 8":           "bits of a byte",
	"simd_gemm_q.go gemmQSome 8":           "bits of a byte",
	"simd_gemv.go bindGemv 10":             "KiB",
	"simd_l2.go 32768":                     "the components whose sum fits in 32 bits",
	"simd_l2.go 48 64":                     "vectors of a block of the vector functions",
	"simd_l2.go manyQueries 100 4":         "percent; bytes of a float",
	"simd_l2.go parallel 8":                "products of bytes in the time of reading one",
	"simd_nearest.go simdNearest 4":        "bytes of a float",
	"simd_nearest.go findMany 10 4":        "KiB; bytes of a float",
	"simd_nearest.go scanMany 23":          "the error of sums",
	"simd_panels.go sizes 16":              "rows of whole cache lines",
	"simd_stream.go spread 10":             "KiB",
	"simd_w2a8.go bindW2A8 4":              "codes of a byte",
	"simd_w2a8.go 4":                       "rows of the vector functions",
	"system.go cpuClockMHz 1e6":            "a unit",
	"toolchain.go 4 20":                    "bytes of a message",
	"worker.go work 1024":                  "bounds of the memory that is kept",
	"rows.go 15 20":                        "what plans of tensors assume of rows, whatever the device",
	"rows_work.go finish 4":                "bytes of a number",
	"choose.go revisits 4":                 "rows for two threads, which plans assume whatever the device has",
	"choose.go effort 1000":                "the end of a walk",
	"choose.go shared 16":                  "the end of a walk",
}

// Numbers of C that are compiled in. A threshold there is a number of 3 or more that has a name or is compared by
// order. Those that could differ from one processor to another have a reason that begins with "compiled in".
var cFacts = map[string]string{
	"all.h FEW_MOST":     "the size of an array",
	"all.h GROUP OFFSET": "products of an instruction",

	"avx2.c":      "the instruction set: its registers, and the tiles that fill them",
	"avx512.c":    "the instruction set: its registers, and the tiles that fill them",
	"neon.c":      "the instruction set: its registers, and the tiles that fill them",
	"x86.h":       "registers",
	"codes.h":     "the format of codes",
	"quant.h":     "formats",
	"gemm_q.h":    "the format of blocks, and tiles that fill the registers",
	"w2a8.h":      "the format of ternary weights, and tiles that fill the registers",
	"gelu.h":      "the terms of series",
	"functions.h": "the terms of series",
	"page.h":      "the size of a page",

	"conv.h lone_rows <3 <9 >3":                     "tiles that fill the registers",
	"conv_dilated.h some":                           "the size of an array",
	"conv_long.h <3 <9":                             "unrolled code",
	"expr.h EXPR_LINKS EXPR_STRIPS EXPR_STREAMS":    "sizes of arrays on the stack",
	"expr.h <=192":                                  "bytes that package cpu counts",
	"expr_chain.h CHAIN_SECOND <12 <8 EIGHT":        "a mark of an instruction; unrolled code",
	"expr_functions.h cc_pi":                        "pi",
	"expr_tile.h EXPR_REGISTERS EXPR_RANK":          "the form of block programs; sizes of arrays",
	"expr_tile.h EXPR_TILE EXPR_STEP":               "compiled in: loops of a length that compilers know",
	"expr_tile.h EXPR_PART EXPR_PIECE":              "compiled in: loops of a length that compilers know",
	"expr_tile.h EXPR_FETCHES":                      "the size of an array",
	"expr_tile.h <10":                               "rounds of a generator of random numbers",
	"few.h UNROLL <4 >4":                            "unrolled code",
	"gemm.h >64":                                    "bytes of a line of a cache",
	"gemm.h <4 >=4":                                 "unrolled code",
	"gemm_int.h gemm_int_cols <4":                   "columns that package cpu packs; unrolled code",
	"l2.h l2_block l2_i8_block l2_i8_short":         "sizes that package cpu shares",
	"l2.h L2_I8_ROWS GROUP OFFSET UNROLL <16 <4":    "tiles, and products of an instruction",
	"move.h HIGH":                                   "compiled in: an array on the stack; whole lines",
	"move.h LINE >=64":                              "bytes of a cache line",
	"nearest.h near_piece near_parallel near_short": "the error of sums, which the catalog's bounds are for",
	"reduce.h BLOCK LEVELS ACROSS <8":               "the error of sums; sizes of arrays",
	"rows.h BESIDE":                                 "compiled in: an array on the stack",
	"rows.h BLOCK":                                  "the error of sums, which the catalog's bounds are for",
	"topk.h TOPK_FEW TOPK_ROOM <4":                  "registers",

	"winograd.h winograd_line winograd_some most": "sizes of arrays, and tiles that fill the registers",
}

// number reports whether a literal may be a threshold.
func number(l *ast.BasicLit) bool {
	return (l.Kind == token.INT || l.Kind == token.FLOAT) && !slices.Contains([]string{"0", "1", "2"}, l.Value)
}

// numbersIn returns the numbers of an expression, without those that a call or an index is given.
func numbersIn(e ast.Expr) (list []string) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.Ident)
			return ok && slices.Contains([]string{"min", "max", "even", "int", "float64"}, f.Name)
		case *ast.IndexExpr, *ast.SliceExpr, *ast.CompositeLit, *ast.FuncLit:
			return false
		case *ast.BasicLit:
			if number(n) {
				list = append(list, n.Value)
			}
		}
		return true
	})
	return list
}

// goThresholds returns the thresholds of a Go file: the name of the file, that of the function, and the number.
func goThresholds(t *testing.T, name string, text any) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	require.NoError(t, err)
	place := filepath.Base(name)
	if strings.Contains(name, "/ann/") { // package cpu has files of the same names
		place = "ann/" + place
	}
	for _, d := range file.Decls {
		at := place + " "
		if f, ok := d.(*ast.FuncDecl); ok {
			at += f.Name.Name + " "
		}
		add := func(list ...ast.Expr) {
			for _, e := range list {
				for _, n := range numbersIn(e) {
					found = append(found, at+n)
				}
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				switch n.Op {
				case token.LSS, token.LEQ, token.GTR, token.GEQ:
					add(n.X, n.Y)
				case token.QUO:
					add(n.Y)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"min", "max", "even"}, f.Name) {
					add(n.Args...)
				}
			case *ast.GenDecl:
				for _, s := range n.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						add(v.Values...)
					}
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return slices.Compact(found)
}

var (
	cComment  = regexp.MustCompile(`//[^\n]*`)
	cEnum     = regexp.MustCompile(`enum \{([^}]*)\}`)
	cEntry    = regexp.MustCompile(`(?:CAT\(\w+, )?(\w+)\)? = ([^,}]*)`)
	cDefine   = regexp.MustCompile(`(?m)^#define (\w+) ([^\\\n]*)$`)
	cNumber   = regexp.MustCompile(`\b\d+`)
	cCompared = regexp.MustCompile(`(?:^|[^<>-])([<>]=?) ?(\d+)\b`)
)

// cThresholds returns the thresholds of a C file: its name, and a name or a comparison.
func cThresholds(name, text string) (found []string) {
	large := func(value string) bool {
		return slices.ContainsFunc(cNumber.FindAllString(value, -1), func(s string) bool {
			n, err := strconv.Atoi(s)
			return err == nil && n > 2
		})
	}
	text = cComment.ReplaceAllString(text, "")
	named := cDefine.FindAllStringSubmatch(text, -1)
	for _, e := range cEnum.FindAllStringSubmatch(text, -1) {
		named = append(named, cEntry.FindAllStringSubmatch(e[1], -1)...)
	}
	for _, m := range named {
		if large(m[2]) {
			found = append(found, name+" "+m[1])
		}
	}
	for _, m := range cCompared.FindAllStringSubmatch(text, -1) {
		if large(m[2]) {
			found = append(found, name+" "+m[1]+m[2])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// without returns what is found beyond facts, and facts that are not found. The words of a fact before its numbers or
// names are the file, and for Go the function; one that has no others covers the file.
func without(found []string, facts map[string]string, isName func(word string) bool) (open, stale []string) {
	used, known := map[string]bool{}, map[string]string{}
	for fact := range facts {
		words := strings.Fields(fact)
		place := 1
		for place < len(words) && isName(words[place]) {
			place++
		}
		at := strings.Join(words[:place], " ")
		if place == len(words) {
			known[at] = fact
		}
		for _, n := range words[place:] {
			known[at+" "+n] = fact
		}
	}
	for _, f := range found {
		file, _, _ := strings.Cut(f, " ")
		_, ok := known[f]
		_, whole := known[file]
		switch {
		case ok:
			used[f] = true
		case whole:
			used[file] = true
		default:
			open = append(open, f)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if !used[k] {
			stale = append(stale, fmt.Sprintf("%s (%s)", k, facts[known[k]]))
		}
	}
	return open, stale
}

func goName(word string) bool { return word[0] < '0' || word[0] > '9' }

func TestThresholdsAreChoices(t *testing.T) {
	files, err := filepath.Glob("../cpu/*.go")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(f string) bool {
		return strings.HasSuffix(f, "_test.go") || strings.HasPrefix(filepath.Base(f), "choices")
	})
	require.NotEmpty(t, files)
	var found []string
	searches, err := filepath.Glob("../ann/*.go")
	require.NoError(t, err)
	for _, f := range searches { // those that search, and make lists, codes and graphs
		name := filepath.Base(f)
		if slices.ContainsFunc([]string{"codes", "graph", "hnsw_search", "ivf", "rank", "search", "storesearch", "work"},
			func(begin string) bool { return strings.HasPrefix(name, begin) }) && !strings.Contains(name, "_file") &&
			!strings.Contains(name, "_test") {
			files = append(files, f)
		}
	}
	for _, f := range append(files, "../kernels/expr/rows.go", "../kernels/expr/rows_work.go", "../tensor/choose.go") {
		found = append(found, goThresholds(t, f, nil)...)
	}
	open, stale := without(found, goFacts, goName)
	assert.Empty(t, open, "are these choices?")
	assert.Empty(t, stale, "are no longer there")

	files, err = filepath.Glob("../csrc/cpu/*.[ch]")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	found = nil
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		found = append(found, cThresholds(filepath.Base(f), string(text))...)
	}
	open, stale = without(found, cFacts, func(string) bool { return false })
	assert.Empty(t, open, "are these choices?")
	assert.Empty(t, stale, "are no longer there")
}

// untuned are the choices that no subject of the tuner has, or what their names begin with before a dot, and why.
var untuned = map[string]string{
	"ann":               "searches of indexes are no launches of kernels",
	"cpu.nearest.fetch": "distances of listed vectors are computed by no launch of a kernel",
	"cpu.copy.inline":   "copies and fills are no launches of kernels",
	"cpu.copy.stage":    "uploads are no launches of kernels",
	"cpu.go.depth":      "products are in Go only where there are no vector functions",
	"cpu.go.rows":       "products are in Go only where there are no vector functions",
	"cpu.go.cols":       "products are in Go only where there are no vector functions",
	"cpu.go.sums":       "products are in Go only where there are no vector functions",
	"cpu.go.tile":       "transpositions are in Go only where there are no vector functions",
}

// TestChoicesHaveSubjects finds choices that concord tune does not try, and names in its subjects that are no choices.
func TestChoicesHaveSubjects(t *testing.T) {
	named := func(c *choice.Choice, prefix string) bool { return slices.Contains(choice.Of(prefix), c) }
	all := choice.All()
	require.NotEmpty(t, choice.Of("ann"))
	reads := map[string]bool{}
	for _, s := range tune.Subjects(all) {
		for _, prefix := range s.Reads {
			reads[prefix] = true
			assert.NotEmpty(t, choice.Of(prefix), "%s reads %s", s.Name, prefix)
		}
	}
	for _, c := range all {
		tried, reason := false, ""
		for prefix := range reads {
			tried = tried || named(c, prefix)
		}
		for prefix, why := range untuned {
			if named(c, prefix) {
				reason = why
			}
		}
		assert.Equal(t, tried, reason == "", "%s has a subject, or a reason why not: %q", c.Name, reason)
	}
	for prefix := range untuned {
		assert.NotEmpty(t, choice.Of(prefix), prefix)
	}
}

// TestThresholdsAreFound plants some.
func TestThresholdsAreFound(t *testing.T) {
	text := `package p
const a, b = 17, "x"
var c = 1 << 20
func f(n int) int {
	if n > 128 || n%5 == 3 { return g(77)[88] }
	return min(n, 40*n) + max(n/64, 2, list{99}[0]) + 1000*n
}`
	assert.Equal(t, []string{"p.go 17", "p.go 20", "p.go f 128", "p.go f 40", "p.go f 64"},
		goThresholds(t, "p.go", text))
	text = "#define A 12 // B 13\n#define C (1 + 2)\nenum { D = 2, E = 3 * W };\nif (n >= 99 || 1 << 30 > n >> 20) p->x;\n"
	assert.Equal(t, []string{"p.h >=99", "p.h A", "p.h E"}, cThresholds("p.h", text))

	facts := map[string]string{"a.go f 7 6": "x", "b.go": "y"}
	open, stale := without([]string{"a.go f 7", "a.go f 8", "b.go 9"}, facts, goName)
	assert.Equal(t, []string{"a.go f 8"}, open)
	assert.Equal(t, []string{"a.go f 6 (x)"}, stale)
}
