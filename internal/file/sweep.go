package file

// What killed processes leave behind.

import (
	"os"
	"strings"
	"time"
)

// A file's temporary name is tempPrefix and tempRandom characters of crypto/rand.Text.
const (
	tempPrefix = ".concord-"
	tempRandom = 26
)

// staleAfter is how long a temporary file must not have been written to before it counts
// as left behind.
const staleAfter = time.Hour

// sweep removes the temporary files in a directory that were last written before then.
func sweep(root *os.Root, then time.Time) {
	dir, err := root.Open(".")
	if err != nil {
		return // what cannot be read is not ours to clean
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if random, ok := strings.CutPrefix(e.Name(), tempPrefix); !ok || !isRandom(random) || !e.Type().IsRegular() {
				continue
			}
			if info, err := e.Info(); err == nil && info.ModTime().Before(then) {
				_ = root.Remove(e.Name()) // another process may do the same, or it is another user's
			}
		}
		if err != nil {
			return
		}
	}
}

// isRandom reports whether a text is one of crypto/rand.Text.
func isRandom(text string) bool {
	return len(text) == tempRandom && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}
