// Tests of the positions of tokens, and of texts written from tokens.

package preprocess

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/token"
)

// places writes each token as "text@file:line:col".
func places(t *testing.T, text string, opt Options) []string {
	res, err := preprocessed(text, opt)
	require.NoError(t, err)
	var s []string
	for _, tok := range res.Tokens {
		s = append(s, fmt.Sprintf("%s@%d:%d", tok.Text, tok.Pos.Line, tok.Pos.Col))
	}
	return s
}

func TestPlaces(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain", "a  b\n\tc /* x\n y */ d", "a@1:1 b@1:4 c@2:2 d@3:7 @3:8"},
		{"crlf", "a\r\n b\r\n", "a@1:1 b@2:2 @3:1"},
		{"continuation", "a \\\n  b\\\nc \\ \n d", "a@1:1 bc@2:3 d@4:2 @4:3"},
		{"macro", "#define N 1 + 2\n  N;", "1@2:3 +@2:3 2@2:3 ;@2:4 @2:5"},
		{"outermost macro", "#define N 1\n#define f(x, y) x y z N\n  f(N,\n    q) w", "1@3:3 q@3:3 z@3:3 1@3:3 w@4:8 @4:9"},
		{"call from a macro", "#define f(x) x\n#define g f\n g\n (\n a )", "a@3:2 @5:5"},
		{"paste and string", "#define f(x) x##1 #x\n f(ab)", "ab1@2:2 \"ab\"@2:2 @2:7"},
		{"pragma", "#pragma unroll\n  _Pragma(\"once upon\")", "#pragma unroll@1:1 @2:23"},
		{"line", "#line 50\na\nb", "a@50:1 b@51:1 @51:2"},
		{"line zero", "# 0 \"<built-in>\"\na", "a@1:1 @1:2"},
		{"bytes", "\"é\" x", "\"é\"@1:1 x@1:6 @1:7"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.want, strings.Join(places(t, test.text, Options{}), " "))
		})
	}
}

func TestPlacesOfFiles(t *testing.T) {
	inc := fstest.MapFS{"sub/x.h": {Data: []byte("#define HERE __FILE__ __LINE__\nx\n")}}
	res, err := preprocessed("#include <sub/x.h>\nHERE\n#line 7 \"gen.cl\"\n y HERE",
		Options{Name: "k.cl", Includes: fsList(inc)})
	require.NoError(t, err)
	var got []string
	for _, tok := range res.Tokens {
		got = append(got, tok.Text+"@"+tok.Pos.String())
	}
	assert.Equal(t, []string{"x@sub/x.h:2:1", `"k.cl"@k.cl:2:1`, "2@k.cl:2:1", "y@gen.cl:7:2", `"gen.cl"@gen.cl:7:4`,
		"7@gen.cl:7:4", "@gen.cl:7:8"}, got)
}

func TestFlags(t *testing.T) {
	res, err := preprocessed("#define E\n#define T float\nT  x=E y;\n E z", Options{})
	require.NoError(t, err)
	var got []string
	for _, tok := range res.Tokens {
		s := tok.Text
		if tok.Space {
			s = "_" + s
		}
		if tok.BOL {
			s = "|" + s
		}
		got = append(got, s)
	}
	assert.Equal(t, []string{"|float", "_x", "=", "_y", ";", "|_z", ""}, got)
}

func TestTextOf(t *testing.T) {
	inc := fstest.MapFS{"x.h": {Data: []byte("int x;\n")}}
	text := "a b\n\nc\n#include \"x.h\"\n#define U _Pragma(\"unroll\") for\nU(;;) -\n#define M -1\n-M\n\n\n\n\n\n\n\nend"
	res, err := preprocessed(text, Options{Name: "k.cl", Includes: fsList(inc)})
	require.NoError(t, err)
	want := `#line 1 "k.cl"
a b

c
#line 1 "x.h"
int x;
#line 6 "k.cl"
#pragma unroll
#line 6 "k.cl"
for(;;) -

- -1
#line 16 "k.cl"
end
`
	assert.Equal(t, want, WriteText(token.NewMeter(t.Context()), res.Tokens))
}

// reread preprocesses a text in which all macros are already expanded.
func reread(text string) ([]token.Token, error) {
	p := &preprocessor{Meter: token.NewMeter(context.Background()), macros: map[string]*macro{}}
	p.enterFile("again.cl", text, fileKey{fsys: mainFile})
	p.run()
	return p.out, p.errs.Err()
}

// checkTextOf checks that the text written from tokens has the same tokens at the same lines.
func checkTextOf(t *testing.T, toks []token.Token) {
	for _, tok := range toks {
		if tok.BOL && tok.Text == "#" {
			return // reads as a directive; the parser refuses it
		}
	}
	again, err := reread(WriteText(token.NewMeter(t.Context()), toks))
	require.NoError(t, err)
	require.Equal(t, spellings(toks), spellings(again))
	for i, tok := range again[:len(again)-1] {
		require.Equal(t, toks[i].Pos.File, tok.Pos.File)
		require.Equal(t, toks[i].Pos.Line, tok.Pos.Line, tok.Text)
		require.Equal(t, toks[i].Kind, tok.Kind, tok.Text)
	}
}

func TestTextOfCorpus(t *testing.T) {
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			res, err := preprocessed(text, Options{Includes: corpusIncludes()})
			require.NoError(t, err)
			checkTextOf(t, res.Tokens)
		})
	}
}
