package csrc

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// row is a row of a table of symbols.
type row struct {
	names    []string // the first that exists is used
	required bool
}

// folders have a symbols.c: gpu that of the libraries that are the same for both vendors.
var folders = []string{"cuda", "rocm", "gpu"}

var rowOf = regexp.MustCompile(`\{"([^"]+)",\s+\w+\(\w+\),\s+(REQUIRED|OPTIONAL)\}`)

// rows reads the tables of symbols of a folder.
func rows(t *testing.T, folder string) (list []row) {
	text, err := os.ReadFile(folder + "/symbols.c")
	require.NoError(t, err)
	for _, m := range rowOf.FindAllStringSubmatch(string(text), -1) {
		list = append(list, row{strings.Fields(m[1]), m[2] == "REQUIRED"})
	}
	require.Len(t, list, strings.Count(string(text), `{"`), "every row is read")
	return list
}

// known reads testdata/symbols.txt: for each folder and symbol, whether an old and a new version have it.
func known(t *testing.T) map[string][2]string {
	text, err := os.ReadFile("testdata/symbols.txt")
	require.NoError(t, err)
	list := map[string][2]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 4 && slices.Contains(folders, f[0]) {
			list[f[0]+" "+f[1]] = [2]string{f[2], f[3]}
		}
	}
	return list
}

// TestSymbols compares the tables of symbols with what versions of the vendors' libraries export: a symbol is one that
// a version has, only the first of a row is one of the newest, and no version lacks all forms of a required one.
func TestSymbols(t *testing.T) {
	versions := known(t)
	seen := 0
	for _, folder := range folders {
		for _, r := range rows(t, folder) {
			forms := make([][2]string, len(r.names))
			for i, name := range r.names {
				v, ok := versions[folder+" "+name]
				require.True(t, ok, "testdata/symbols.txt does not have %s %s: look it up", folder, name)
				assert.NotEqual(t, [2]string{"no", "no"}, v, "no version has %s", name)
				forms[i] = v
				seen++
			}
			for i, f := range forms {
				assert.True(t, i == 0 || f[1] == "no", "%v: the newest form has to be the first", r.names)
			}
			for version := range 2 {
				has := false
				for _, f := range forms {
					has = has || f[version] != "no"
				}
				assert.True(t, has || !r.required, "%v is required, and a version has none of it", r.names)
			}
		}
	}
	assert.Len(t, versions, seen, "testdata/symbols.txt has symbols that no shim looks up")
}
