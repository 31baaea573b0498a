package file

// Removal of files left behind by killed processes.

import (
	"crypto/rand"
	"os"
	"strings"
	"time"
)

// A file's temporary name is tempPrefix and tempRandom characters of base 32, random ones but for the first
// tempHere where [here] is known.
const (
	tempPrefix = ".concord-"
	tempRandom = 26
	tempHere   = 8
)

// tempName returns a new temporary name.
func tempName() string { return tempPrefix + (here() + rand.Text())[:tempRandom] }

// staleAfter is how long ago the last write to a temporary file must be before it counts as left
// behind, if that is not known otherwise.
const staleAfter = time.Hour

// sweep removes the temporary files in a directory that were last written before then, and those of processes
// of this machine that are dead.
func sweep(root *os.Root, then time.Time) {
	dir, err := root.Open(".")
	if err != nil {
		return // a directory that cannot be read is not cleaned
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
			} else if h := here(); h != "" && strings.HasPrefix(e.Name(), tempPrefix+h) {
				removeAbandoned(root, e.Name())
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
