package source

// The revision of the front end. A change in how programs are read or rendered has
// to change the cache key of every binary that was compiled from a rendering.

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

//go:embed *.go host/*.go host/*.h internal/*/*.go internal/*/*/*.go internal/render/prelude/*.h internal/*/*/*.cl
var self embed.FS

// revision is a hash over the source text of the front end, with all its internal packages. A
// version number raised by hand would be forgotten at some point, and a cache would then serve
// binaries that an older renderer got wrong.
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
