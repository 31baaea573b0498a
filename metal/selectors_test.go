package metal

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	tablePath   = "../docs/metal.md"
	headersPath = "../tests/sim/metal/include"
)

// A declaration of Apple's, and whose it is: "functions" for those of C.
type declaration struct{ of, text string }

var (
	tableRow      = regexp.MustCompile("^\\| (\\w+) \\| `(.+)` \\| \\[page\\]\\((.+)\\) \\|$")
	headerType    = regexp.MustCompile(`^@(?:protocol|interface) (\w+)(?: [:<].*)?$`)
	headerComment = regexp.MustCompile(`//.*`)
	parameters    = regexp.MustCompile(`\([^()]*(?:\([^()]*\)[^()]*)*\)\w*`)
	method        = regexp.MustCompile(`^[-+] \([^()]*\)(\w+)`)
	lastWord      = regexp.MustCompile(`(\w+)$`)
	getter        = regexp.MustCompile(`getter=(\w+)`)
)

// documented reads the table of docs/metal.md: the declarations, and the selectors of
// Foundation.
func documented(t *testing.T) (rows map[declaration]string, foundation []string) {
	t.Helper()
	text, err := os.ReadFile(tablePath)
	require.NoError(t, err)
	rows = map[declaration]string{}
	_, section, found := strings.Cut(string(text), "\n## Selectors\n")
	require.True(t, found)
	of, rest, _ := strings.Cut(section, "And of Foundation")
	for line := range strings.Lines(of) {
		if m := tableRow.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			rows[declaration{m[1], m[2]}] = m[3]
		}
	}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(rest, -1) {
		foundation = append(foundation, m[1])
	}
	return rows, foundation
}

// declared reads the simulated headers, which have a declaration per line.
func declared(t *testing.T) map[declaration]bool {
	t.Helper()
	list := map[declaration]bool{}
	files, err := filepath.Glob(headersPath + "/Metal*/*.h")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		of := ""
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(headerComment.ReplaceAllString(line, ""))
			m := headerType.FindStringSubmatch(line)
			line, complete := strings.CutSuffix(line, ";")
			switch {
			case m != nil && !complete:
				of = m[1]
			case line == "@end":
				of = ""
			case of != "" && line != "":
				assert.True(t, complete, "%s: %q is not a declaration on one line", file, line)
				list[declaration{of, line}] = true
			case strings.HasPrefix(line, "extern ") && strings.HasSuffix(line, ")"):
				list[declaration{"functions", strings.TrimPrefix(line, "extern ")}] = true
			}
		}
	}
	return list
}

// selectors are those of a declaration: a property has two if it can be set.
func (d declaration) selectors() []string {
	switch {
	case d.of == "functions":
		return nil
	case strings.HasPrefix(d.text, "@property"):
		name := lastWord.FindString(d.text)
		get := name
		if m := getter.FindStringSubmatch(d.text); m != nil {
			get = m[1]
		}
		if strings.Contains(d.text, "readonly") {
			return []string{get}
		}
		return []string{get, "set" + strings.ToUpper(name[:1]) + name[1:] + ":"}
	}
	word := method.FindStringSubmatch(d.text)[1]
	labels := parameters.ReplaceAllString(strings.TrimLeft(d.text, "+- "), "")
	return []string{word + strings.ReplaceAll(labels, " ", "")}
}

func byText(a, b declaration) int {
	return cmp.Or(strings.Compare(a.of, b.of), strings.Compare(a.text, b.text))
}

// The simulated headers declare what the table says that Apple declares, and nothing
// else.
func TestSelectorsDeclared(t *testing.T) {
	rows, _ := documented(t)
	headers := declared(t)
	require.NotEmpty(t, rows)
	var missing, more []declaration
	for d, page := range rows {
		if !headers[d] {
			missing = append(missing, d)
		}
		assert.Regexp(t, `^https://developer\.apple\.com/documentation/metal(performanceshaders)?/[a-z0-9_/():]+$`, page)
	}
	for d := range headers {
		if rows[d] == "" {
			more = append(more, d)
		}
	}
	slices.SortFunc(missing, byText)
	slices.SortFunc(more, byText)
	assert.Empty(t, missing, "in the table, and not so in the headers")
	assert.Empty(t, more, "in the headers, and not so in the table")
}

func TestSelectorsOfDeclarations(t *testing.T) {
	for text, want := range map[string][]string{
		"- (void)commit": {"commit"},
		"- (nullable id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options": {"newBufferWithLength:options:"},
		"- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index":             {"setBytes:length:atIndex:"},
		"@property (readonly, getter=isRemovable) BOOL removable":                                              {"isRemovable"},
		"@property (readwrite, nonatomic, copy, nullable) NSURL *url":                                          {"url", "setUrl:"},
	} {
		assert.Equal(t, want, declaration{"MTLDevice", text}.selectors(), text)
	}
}

// compile runs clang over the shim as it is built on Linux, or skips.
func compile(t *testing.T, args ...string) []byte {
	t.Helper()
	clang, err := exec.LookPath(cmp.Or(os.Getenv("CLANG"), "clang"))
	if err != nil {
		skip(t, err.Error())
	}
	if _, err := os.Stat("/usr/include/GNUstep/Foundation/Foundation.h"); err != nil {
		skip(t, err.Error())
	}
	gcc, err := exec.Command("gcc", "-print-file-name=include").Output()
	if err != nil {
		skip(t, err.Error())
	}
	runtime := filepath.Join(strings.TrimSpace(string(gcc)), "objc")
	if _, err := os.Stat(runtime); err != nil {
		skip(t, err.Error())
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "include"), 0o755))
	require.NoError(t, os.Symlink(runtime, filepath.Join(dir, "include", "objc")))
	flags, err := exec.Command("sh", "../tests/sim/metal/flags.sh", dir).Output()
	require.NoError(t, err)
	args = append(strings.Fields(string(flags)), args...)
	out, err := exec.Command(clang, append(args, "../csrc/metal/metal.m")...).CombinedOutput()
	require.NoError(t, err, "%.4000s", out)
	return out
}

// skip skips, unless the machine is one that must be able to.
func skip(t *testing.T, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("CONCORD_REQUIRE"), ","), "sim-metal") {
		t.Fatal(why)
	}
	t.Skip(why)
}

// The shim compiles without a warning against the simulated headers, and sends no
// message that is not in the table.
func TestSelectorsUsed(t *testing.T) {
	assert.Empty(t, string(compile(t, "-O2", "-Wall", "-Wextra", "-Werror", "-c", "-o", os.DevNull)))
	rows, foundation := documented(t)
	known := map[string]bool{}
	for d := range rows {
		for _, s := range d.selectors() {
			known[s] = true
		}
	}
	for _, s := range foundation {
		known[s] = true
	}
	sent := map[string]bool{}
	message := regexp.MustCompile(`(?:ObjCMessageExpr .* selector=|ObjCSelectorExpr .* )([\w:]+)(?: class=.*)?$`)
	for line := range strings.Lines(string(compile(t, "-fsyntax-only", "-fno-color-diagnostics", "-Xclang", "-ast-dump"))) {
		if m := message.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			sent[m[1]] = true
		}
	}
	require.Greater(t, len(sent), 50, "what clang tells has another form than expected")
	for s := range sent {
		assert.True(t, known[s], "%s is sent, and not in the table of %s", s, tablePath)
	}
}
