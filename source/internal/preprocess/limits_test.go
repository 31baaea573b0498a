// Tests of limits: no input may make the preprocessor hang or use too much memory.

package preprocess

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/token"
)

// doubling is a macro bomb: n definitions that each use the one before twice.
func doubling(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i+1, i)
	}
	return b.String()
}

func TestLimits(t *testing.T) {
	inc := fstest.MapFS{
		"self.h":  {Data: []byte("#include \"self.h\"\n")},
		"tree.h":  {Data: []byte("#if __COUNTER__ < 1000000\n#include \"leaf.h\"\n#include \"leaf.h\"\n#endif\n")},
		"leaf.h":  {Data: []byte("#include \"tree0.h\"\n")},
		"tree0.h": {Data: []byte("x\n")},
		"large.h": {Data: make([]byte, maxFileBytes+1)},
		"half.h":  {Data: []byte(strings.Repeat(" ", maxFileBytes-1) + "\n")},
	}
	many := func(s string) string { return strings.Repeat(s, 200000) }
	tests := []struct{ name, text, want string }{
		{"objects", doubling(64, "#define a%d a%d a%[2]d") + "a64", "expands to"},
		{"empty objects", "#define a0\n" + doubling(64, "#define a%d a%d a%[2]d") + "a64", "expands to"},
		{"calls", "#define D(x) x x\n" + strings.Repeat("D(", 60) + "1" + strings.Repeat(")", 60), "expands to"},
		{"long tokens", "#define C(x) x##x\n#define a0() a\n" + doubling(64, "#define X%d() E(X%d())") +
			"#define E(x) C(x)\n#define X0() a\nX64()", "expands to too much text"},
		{"long strings", "#define S(x) #x\n#define X(x) S(x)\n" + strings.Repeat("X(", 64) + `"\"` + `"` +
			strings.Repeat(")", 64), "expands to too much text"},
		{"tokens times length", "#define L " + strings.Repeat("a", 1<<20) + "\n" + strings.Repeat("L ", 1<<10),
			"expands to too much text"},
		{"in #if", doubling(64, "#define a%d a%d + a%[2]d") + "#if a64\n#endif", "expands to"},
		{"nested calls", "#define f(x) x\n" + strings.Repeat("f(", 1100) + strings.Repeat(")", 1100), "nested deeper than"},
		{"many nested calls", "#define f(x) x\n" + many("f(") + many(")"), "expands to too much"},
		{"nested parentheses", "#if " + many("(") + "1\n#endif", "nested deeper than"},
		{"nested signs", "#if " + many("!") + "1\n#endif", "nested deeper than"},
		{"nested choices", "#if " + many("1?") + "1\n#endif", "nested deeper than"},
		{"includes itself", "#include \"self.h\"", "nested deeper than 64"},
		{"includes again and again", strings.Repeat("#include \"tree.h\"\n", 5000), "includes too much"},
		{"includes a lot", strings.Repeat("#include \"half.h\"\n", 10), "includes too much"},
		{"large file", "#include \"large.h\"", "file is too large"},
		{"large program", strings.Repeat(" ", maxFileBytes+1), "program is larger than"},
		{"many tokens", strings.Repeat("a ", maxTokens+1), "expands to more than"},
		{"many unclosed groups", many("#if 1\n"), "#if without #endif"},
		{"many arguments", "#define f(x) x\nf(" + many(",") + ")", "takes 1 arguments, not 200001"},
		{"unclosed calls", "#define f(x) x\n" + many("f("), "has no )"},
		{"backslashes", many("\\ "), "stray character"},
		{"quotes", many("L'\n"), "not closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			_, err := preprocessed(test.text, Options{Includes: fsList(inc)})
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.want)
			assert.Less(t, time.Since(start), 20*time.Second)
			t.Log(time.Since(start))
		})
	}
}

// TestWithinLimits: programs below the limits are accepted.
func TestWithinLimits(t *testing.T) {
	tests := []struct{ name, text string }{
		{"long chain", "#define a0 1\n" + doubling(50000, "#define a%d a%d") + "a50000"},
		{"many splices", strings.Repeat("\\\n", 500000) + "1"},
		{"many comments", strings.Repeat("/**/", 500000) + "1"},
		{"nested calls", "#define f(x) x\n" + strings.Repeat("f(", 500) + "1" + strings.Repeat(")", 500)},
		{"many groups", strings.Repeat("#if 0\n", 100000) + strings.Repeat("#endif\n", 100000) + "1"},
		{"many parameters", "#define f(a0" + doubling(10000, ",a%d/*%d*/") + ") 1\nf(" + strings.Repeat(",", 10000) + ")"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			start := time.Now()
			text := test.text
			if strings.HasPrefix(test.name, "many par") {
				text = strings.ReplaceAll(text, "*/\n", "*/")
			}
			assert.Equal(t, "1", expand(text, Options{}))
			t.Log(time.Since(start))
		})
	}
}

// FuzzPreprocess looks for panics and hangs, and checks the properties of the result that the
// parser relies on.
func FuzzPreprocess(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
	}
	for _, text := range []string{
		"#define f(x,...) #x x##x , ## __VA_ARGS__\nf(1,2)(3)", "#if (1 ? 2 : 3) && defined(A) || 'a' << 3u\n#elif " +
			"1\n#else\n#endif",
		"#include <guard.h>\n#include \"sub/../once.h\"", "_Pragma(\"unroll \\\"4\\\"\") L'\\x41' 0x1.8p3f %:%: <: \\\r\n x",
		"#line 3 \"a\\\"b\"\n__FILE__ __LINE__ __COUNTER__ FLT_MAX",
	} {
		f.Add(text)
	}
	includes := corpusIncludes()
	f.Fuzz(func(t *testing.T, text string) {
		res, err := preprocessed(text, Options{Includes: includes})
		if err != nil {
			list, ok := err.(token.ErrorList)
			require.True(t, ok)
			require.LessOrEqual(t, len(list), token.MaxErrors)
			for _, e := range list {
				require.Positive(t, e.Pos.Line, "%v", e)
				require.Positive(t, e.Pos.Col, "%v", e)
				require.NotEmpty(t, e.Construct, "%v", e)
			}
			return
		}
		last := len(res.Tokens) - 1
		require.Equal(t, token.EOF, res.Tokens[last].Kind)
		for i, tok := range res.Tokens {
			require.True(t, i == last || tok.Kind > token.EOF && tok.Kind <= token.Pragma && tok.Text != "", "token %d: %+v", i,
				tok)
			require.Positive(t, tok.Pos.Col)
		}
		checkTextOf(t, res.Tokens)
	})
}
