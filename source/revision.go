package source

// What the front end itself is: a change in how programs are read or rendered has
// to change the key of every binary that was compiled from a rendering.

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

//go:embed *.go internal/*/*.go internal/render/prelude/*.h
var self embed.FS

// revision is a hash over the front end's own text, all rooms of it. A number that someone
// has to remember to raise would be forgotten once, and a cache would then serve what an
// older renderer got wrong.
var revision = sync.OnceValue(func() string {
	h := sha256.New()
	err := fs.WalkDir(self, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := self.ReadFile(name)
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
		return err
	})
	if err != nil {
		panic(err) // it is part of the program
	}
	return fmt.Sprintf("concord source %x", h.Sum(nil))
})
