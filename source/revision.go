package source

// What the front end itself is: a change in how programs are read or rendered has
// to change the key of every binary that was compiled from a rendering.

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed *.go prelude/*.h
var self embed.FS

// revision is a hash over the front end's own text. A number that someone has to
// remember to raise would be forgotten once, and a cache would then serve what an
// older renderer got wrong.
var revision = sync.OnceValue(func() string {
	h := sha256.New()
	for _, dir := range []string{".", "prelude"} {
		entries, err := self.ReadDir(dir)
		if err != nil {
			panic(err) // it is part of the program
		}
		for _, e := range entries {
			if e.IsDir() || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			name := strings.TrimPrefix(dir+"/"+e.Name(), "./")
			text, err := self.ReadFile(name)
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
		}
	}
	return fmt.Sprintf("concord source %x", h.Sum(nil))
})
