// Comparison of the preprocessor with GNU cpp: both have to return the same tokens for a corpus of
// tricky texts and for random programs of macros.

package preprocess

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/token"
)

const corpusDir = "testdata/pp"

// corpus returns the texts of testdata/pp by name.
func corpus(tb testing.TB) map[string]string {
	names, err := filepath.Glob(corpusDir + "/*.cl")
	require.NoError(tb, err)
	require.NotEmpty(tb, names)
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(tb, err)
		texts[filepath.Base(name)] = string(text)
	}
	return texts
}

func corpusIncludes() []fs.FS { return fsList(os.DirFS(corpusDir + "/inc")) }

// needCPP returns GNU cpp's path or skips.
func needCPP(t *testing.T) string {
	cpp, err := exec.LookPath("cpp")
	if err != nil {
		t.Skip("no cpp to compare with: ", err)
	}
	version, _ := exec.Command(cpp, "--version").Output()
	if !bytes.Contains(version, []byte("Free Software Foundation")) {
		t.Skip("cpp is not GNU's")
	}
	return cpp
}

// runCPP returns the tokens that cpp makes of text.
func runCPP(t *testing.T, cpp, text string) ([]string, error) {
	inc, err := filepath.Abs(corpusDir + "/inc")
	require.NoError(t, err)
	cmd := exec.Command(cpp, "-P", "-undef", "-nostdinc", "-std=gnu99", "-w", "-I", inc, "-")
	cmd.Dir = t.TempDir() // so that quoted includes are found by -I only
	cmd.Stdin = strings.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	return lexOutput(string(out)), nil
}

// lexOutput splits the output of cpp into tokens; a pragma is one token.
func lexOutput(text string) []string {
	l := newLexer("cpp", text, func(token.Pos, string, string) {})
	var toks []string
	for {
		t := l.next()
		switch {
		case t.Kind == token.EOF:
			return toks
		case t.Kind == token.Newline:
		case t.BOL && t.Text == "#":
			line := []token.Token{}
			for t = l.next(); t.Kind != token.Newline; t = l.next() {
				line = append(line, t)
			}
			if len(line) > 0 && line[0].Text == "pragma" {
				toks = append(toks, strings.TrimSpace("#pragma "+spell(line[1:])))
				continue
			}
			toks = append(toks, "#")
			for _, t := range line {
				toks = append(toks, digraph(t.Text))
			}
		default:
			toks = append(toks, digraph(t.Text))
		}
	}
}

// runOurs returns the tokens that preprocess makes of text.
func runOurs(text string) ([]string, error) {
	res, err := preprocessed(text, Options{Includes: corpusIncludes()})
	if err != nil {
		return nil, err
	}
	return spellings(res.Tokens), nil
}

func TestCorpusLikeCPP(t *testing.T) {
	cpp := needCPP(t)
	for name, text := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			want, err := runCPP(t, cpp, text)
			require.NoError(t, err)
			got, err := runOurs(text)
			require.NoError(t, err)
			assert.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"))
		})
	}
}

// TestRandomLikeCPP: for random programs both either return the same tokens, or both return an
// error. PP_ROUNDS=5000 runs more programs, PP_SEED=7 others.
func TestRandomLikeCPP(t *testing.T) {
	cpp := needCPP(t)
	rounds, seed := 120, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("PP_ROUNDS")); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("PP_SEED"), 10, 64); err == nil {
		seed = n
	}
	good := 0
	for i := range rounds {
		g := &macroGen{r: rand.New(rand.NewPCG(seed, uint64(i)))}
		text := g.program()
		want, cppErr := runCPP(t, cpp, text)
		got, err := runOurs(text)
		if cppErr == nil && onlyRefused(err) {
			continue
		}
		if cppErr != nil || err != nil {
			require.Equal(t, cppErr != nil, err != nil, "round %d: cpp says %v, we say %v, of\n%s", i, cppErr, err, text)
			continue
		}
		good++
		require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"), "round %d, of\n%s", i, text)
	}
	t.Logf("%d of %d programs were good", good, rounds)
	assert.Greater(t, good, rounds/4, "the generator makes too many wrong programs to say anything")
}

// onlyRefused reports whether every mistake is a token that cpp accepts and a compiler would
// refuse.
func onlyRefused(err error) bool {
	var list token.ErrorList
	if !errors.As(err, &list) {
		return false
	}
	return !slices.ContainsFunc(list, func(e *token.Error) bool { return e.Construct != "number" })
}

// macroGen writes random programs that consist of macros.
type macroGen struct {
	r      *rand.Rand
	b      strings.Builder
	params []string
	arity  map[string]int // how many arguments the calls of a name have, mostly
}

func (g *macroGen) pick(s ...string) string { return s[g.r.IntN(len(s))] }
func (g *macroGen) one(n int) bool          { return g.r.IntN(n) == 0 }

// There are few names, so that macros often contain themselves. F to I take arguments unless a
// definition says otherwise.
func (g *macroGen) name() string {
	return g.pick("a", "b", "c", "d", "F", "G", "H", "I")
}

func (g *macroGen) program() string {
	g.arity = map[string]int{}
	for _, name := range []string{"F", "G", "H", "I"} {
		g.arity[name] = g.r.IntN(4)
	}
	for range 3 + g.r.IntN(8) {
		g.definition()
	}
	for range 2 + g.r.IntN(6) {
		switch {
		case g.one(8):
			fmt.Fprintf(&g.b, "#undef %s\n", g.name())
		case g.one(6):
			g.definition()
		case g.one(5):
			g.group()
		default:
			fmt.Fprintf(&g.b, "%s\n", g.words(3+g.r.IntN(6), 3))
		}
	}
	return g.b.String()
}

func (g *macroGen) group() {
	fmt.Fprintf(&g.b, "#if %s\n%s\n", g.cond(4), g.words(4, 2))
	if g.one(2) {
		fmt.Fprintf(&g.b, "#elif defined %s\n%s\n", g.name(), g.words(3, 2))
	}
	if g.one(2) {
		fmt.Fprintf(&g.b, "#else\n%s\n", g.words(3, 2))
	}
	g.b.WriteString("#endif\n")
}

// cond returns a constant expression that is always valid.
func (g *macroGen) cond(depth int) string {
	if depth == 0 || g.one(5) {
		return g.pick("0", "1", "-1", "2u", "0x7fffffffffffffff", "0xffffffffffffffff", "-3", "017", "'a'", "'\\377'",
			"'ab'", "defined a", "defined(F)", "zero", "63", "5L", "7ull")
	}
	x, y := g.cond(depth-1), g.cond(depth-1)
	switch op := g.pick("+", "-", "*", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||", "/", "%",
		"?", "!", "~", "-u"); op {
	case "/", "%":
		return fmt.Sprintf("(%s %s (%s | 1))", x, op, y)
	case "<<", ">>":
		return fmt.Sprintf("(%s %s (%s & 127) - 32)", x, op, y)
	case "?":
		return fmt.Sprintf("(%s ? %s : %s)", x, y, g.cond(depth-1))
	case "!", "~":
		return op + "(" + x + ")"
	case "-u":
		return "- " + x
	default:
		if g.one(3) {
			return fmt.Sprintf("(%s) %s %s", x, op, y)
		}
		return fmt.Sprintf("(%s %s %s)", x, op, y)
	}
}

func (g *macroGen) definition() {
	name := g.name()
	g.params = nil
	fmt.Fprintf(&g.b, "#define %s", name)
	if strings.ToUpper(name) == name != g.one(12) {
		g.params = append(g.params, []string{"x", "y", "z"}[:g.arity[name]]...)
		list := strings.Join(g.params, ",")
		if len(g.params) > 0 && g.one(5) {
			list += g.pick(",...", "...")
			if strings.HasSuffix(list, ",...") {
				g.params = append(g.params, "__VA_ARGS__")
			}
		}
		fmt.Fprintf(&g.b, "(%s)", list)
	}
	fmt.Fprintf(&g.b, " %s\n", g.replacement())
	g.params = nil
}

// replacement returns a list of tokens with parameters, # and ## in it.
func (g *macroGen) replacement() string {
	var s []string
	for range g.r.IntN(6) {
		w := g.word(2)
		switch {
		case len(g.params) > 0 && g.one(6):
			w = g.pick("#", "# ") + g.pick(g.params...)
		case len(g.params) > 0 && g.one(5):
			w = g.operand() + g.pick("##", " ## ") + g.operand()
			if g.one(3) {
				w += "##" + g.operand()
			}
		case len(g.params) > 0 && g.params[len(g.params)-1] == "__VA_ARGS__" && g.one(3):
			w = g.pick(",", "F(1,", "H(") + "##__VA_ARGS__"
		}
		s = append(s, w)
	}
	return strings.Join(s, g.pick(" ", " ", ""))
}

func (g *macroGen) operand() string {
	if g.one(3) {
		return g.pick("a", "F", "k", "1", "G")
	}
	return g.pick(g.params...)
}

// words returns a sequence of n words with or without spaces between them.
func (g *macroGen) words(n, depth int) string {
	var b strings.Builder
	for range n {
		b.WriteString(g.word(depth))
		b.WriteString(g.pick(" ", " ", "", "/**/"))
		if depth == 3 && g.one(6) {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func (g *macroGen) word(depth int) string {
	if depth > 0 && g.one(3) {
		name := g.pick("F", "G", "H", "I")
		n := g.arity[name]
		if g.one(40) {
			n = g.r.IntN(5)
		}
		var args []string
		for range n {
			if g.one(3) {
				args = append(args, strings.TrimSpace(g.words(g.r.IntN(3), depth-1)))
			} else {
				args = append(args, g.pick("a", "b", "c", "d", "k", "F", "H", "", "__LINE__"))
			}
		}
		return name + g.pick("", "", " ") + "(" + strings.Join(args, g.pick(",", ", ", " ,")) + ")"
	}
	if len(g.params) > 0 && g.one(2) {
		return g.pick(g.params...)
	}
	return g.pick(g.name(), g.name(), g.name(), "k", "1", "7", "+", "-", "<", "=", "\"s\\n\"", "'c'", "x", "&", ".", "(k)",
		"[0]", "F", "G")
}
