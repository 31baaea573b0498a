package metal

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/tests/sim"
)

const (
	tablePath   = "../docs/metal.md"
	headersPath = "../tests/sim/metal/include"
)

// A declaration of Apple's with the class or protocol that it belongs to; "functions" for C
// functions.
type declaration struct{ of, text string }

var (
	tableRow      = regexp.MustCompile("^\\| (\\w+) \\| `(.+)` \\| \\[page\\]\\((.+)\\) \\|$")
	headerType    = regexp.MustCompile(`^@(?:protocol|interface) (\w+)(?: [:<].*)?$`)
	headerComment = regexp.MustCompile(`//.*`)
	parameters    = regexp.MustCompile(`\([^()]*(?:\([^()]*\)[^()]*)*\)\w*`)
	method        = regexp.MustCompile(`^[-+] \([^()]*\)(\w+)`)
	lastWord      = regexp.MustCompile(`(\w+)$`)
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

// headers reads the simulated headers, which have a declaration per line, and returns
// their lines by path; each visits the declarations and may change their lines.
func headers(t *testing.T, each func(d declaration, line *string)) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	paths, err := filepath.Glob(headersPath + "/Metal*/*.h")
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		of := ""
		for i := range lines {
			line := strings.TrimSpace(headerComment.ReplaceAllString(lines[i], ""))
			m := headerType.FindStringSubmatch(line)
			line, complete := strings.CutSuffix(line, ";")
			switch {
			case m != nil && !complete:
				of = m[1]
			case line == "@end":
				of = ""
			case of != "" && line != "":
				assert.True(t, complete, "%s: %q is not a declaration on one line", path, line)
				each(declaration{of, line}, &lines[i])
			case strings.HasPrefix(line, "extern ") && strings.HasSuffix(line, ")"):
				each(declaration{"functions", strings.TrimPrefix(line, "extern ")}, &lines[i])
			}
		}
		name, err := filepath.Rel(headersPath, path)
		require.NoError(t, err)
		files[name] = lines
	}
	return files
}

// selectors returns the selectors of a declaration: a property that can be set has two.
func (d declaration) selectors() []string {
	switch {
	case d.of == "functions":
		return nil
	case strings.HasPrefix(d.text, "@property"):
		name := lastWord.FindString(d.text)
		if strings.Contains(d.text, "readonly") {
			return []string{name}
		}
		return []string{name, "set" + strings.ToUpper(name[:1]) + name[1:] + ":"}
	}
	word := method.FindStringSubmatch(d.text)[1]
	labels := parameters.ReplaceAllString(strings.TrimLeft(d.text, "+- "), "")
	return []string{word + strings.ReplaceAll(labels, " ", "")}
}

func byText(a, b declaration) int {
	return cmp.Or(strings.Compare(a.of, b.of), strings.Compare(a.text, b.text))
}

// The simulated headers declare exactly the declarations of the table.
func TestSelectorsDeclared(t *testing.T) {
	rows, _ := documented(t)
	declared := map[declaration]bool{}
	headers(t, func(d declaration, _ *string) { declared[d] = true })
	require.NotEmpty(t, rows)
	var missing, more []declaration
	for d, page := range rows {
		if !declared[d] {
			missing = append(missing, d)
		}
		assert.Regexp(t, `^https://developer\.apple\.com/documentation/metal(performanceshaders)?/[a-z0-9_/():]+$`, page)
	}
	for d := range declared {
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
		"- (nullable id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options": {
			"newBufferWithLength:options:"},
		"- (void)setBytes:(const void *)bytes length:(NSUInteger)length atIndex:(NSUInteger)index": {
			"setBytes:length:atIndex:"},
		"@property (readonly) BOOL hasUnifiedMemory": {
			"hasUnifiedMemory"},
		"@property (readwrite, nonatomic, copy, nullable) NSURL *url": {
			"url", "setUrl:"},
	} {
		assert.Equal(t, want, declaration{"MTLDevice", text}.selectors(), text)
	}
}

// compile runs clang over the shim as it is built on Linux, or skips.
func compile(t *testing.T, args ...string) (string, error) {
	t.Helper()
	clang, err := exec.LookPath(cmp.Or(os.Getenv("CLANG"), "clang"))
	if err != nil {
		sim.Absent(t, "sim-metal", err.Error())
	}
	if _, err := os.Stat("/usr/include/GNUstep/Foundation/Foundation.h"); err != nil {
		sim.Absent(t, "sim-metal", err.Error())
	}
	gcc, err := exec.Command("gcc", "-print-file-name=include").Output()
	if err != nil {
		sim.Absent(t, "sim-metal", err.Error())
	}
	runtime := filepath.Join(strings.TrimSpace(string(gcc)), "objc")
	if _, err := os.Stat(runtime); err != nil {
		sim.Absent(t, "sim-metal", err.Error())
	}
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "include"), 0o755))
	require.NoError(t, os.Symlink(runtime, filepath.Join(dir, "include", "objc")))
	flags, err := exec.Command("sh", "../tests/sim/metal/flags.sh", dir).Output()
	require.NoError(t, err)
	args = slices.Concat(args, strings.Fields(string(flags)), []string{"../csrc/metal/metal.m"})
	out, err := exec.Command(clang, args...).CombinedOutput()
	return string(out), err
}

// The shim compiles without a warning against the simulated headers, and sends what is
// in the table and nothing else.
func TestSelectorsUsed(t *testing.T) {
	out, err := compile(t, "-O2", "-Wall", "-Wextra", "-Werror", "-c", "-o", os.DevNull)
	require.NoError(t, err, "%.4000s", out)
	assert.Empty(t, out)
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
	out, err = compile(t, "-fsyntax-only", "-fno-color-diagnostics", "-Xclang", "-ast-dump")
	require.NoError(t, err, "%.4000s", out)
	for line := range strings.Lines(out) {
		if m := message.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			sent[m[1]] = true
		}
	}
	require.Greater(t, len(sent), 50, "clang's output has another form than expected")
	for s := range sent {
		assert.True(t, known[s], "%s is sent, and not in the table of %s", s, tablePath)
	}
	for _, s := range foundation {
		assert.True(t, sent[s], "%s is in the table of %s, and not sent", s, tablePath)
	}
}

// The shim uses every row of the table. In a copy of the headers every declaration is marked as
// unavailable, so that clang reports each use.
func TestSelectorsNeeded(t *testing.T) {
	dir := t.TempDir()
	list := []declaration{}
	files := headers(t, func(d declaration, line *string) {
		*line = strings.Replace(*line, ";", fmt.Sprintf(` __attribute__((unavailable("number %d")));`, len(list)), 1)
		list = append(list, d)
	})
	for name, lines := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644))
	}
	out, err := compile(t, "-I"+dir, "-fsyntax-only", "-fno-color-diagnostics", "-ferror-limit=0")
	require.Error(t, err, "clang's output has another form than expected")
	for i, d := range list {
		used := strings.Contains(out, fmt.Sprintf(" is unavailable: number %d\n", i))
		assert.True(t, used, "%s: %s is in the table of %s, and not used", d.of, d.text, tablePath)
	}
}
