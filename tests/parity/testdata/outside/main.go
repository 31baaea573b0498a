// Command outside is a program of another module with kernels of its own. It runs parity on
// cpu:0 for four families: limit, the same with a native implementation that is wrong, the same
// without a native implementation, and one whose cases have no result. It prints the results as
// JSON.
package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"log"
	"os"
	"testing/fstest"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/parity"
	"github.com/concord-compute/concord/source"

	_ "example.org/outside/limit"
	_ "github.com/concord-compute/concord/cpu"
)

// another registers limit under another ID, with another native and its cases changed.
func another(id string, native func(*source.Unit, string) kernels.Func, change func(c *kernels.Case)) {
	limit, ok := kernels.Find("limit")
	if !ok {
		log.Fatal("limit is not in the catalog")
	}
	text, err := fs.ReadFile(limit.Source, "limit.cl")
	if err != nil {
		log.Fatal(err)
	}
	f := *limit
	f.ID, f.Native, f.Source = id, native, fstest.MapFS{id + ".cl": {Data: text}}
	f.Cases = func(f *kernels.Family) []kernels.Case {
		cases := limit.Cases(f)
		for i := range cases {
			change(&cases[i])
		}
		return cases
	}
	kernels.Register(f)
}

func main() {
	same := func(*kernels.Case) {}
	another("limit_text", nil, same)
	another("limit_blind", nil, func(c *kernels.Case) {
		c.Args[1].Dir, c.Args[1].Fill = kernels.In, c.Args[0].Fill
		c.Args[4].V = 0 // so that the kernel changes nothing
	})
	another("limit_wrong", func(u *source.Unit, kernel string) kernels.Func {
		limit, _ := kernels.Find("limit")
		right := limit.Native(u, kernel)
		if right == nil {
			return nil
		}
		return func(c *kernels.Call) error {
			err := right(c)
			c.Bytes(1)[0] ^= 1 // the last bit of the first element
			return err
		}
	}, same)
	s, err := runtime.New(runtime.Config{Fallback: runtime.Require})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	results, err := parity.Run(context.Background(), parity.Options{Session: s, Devices: []string{"cpu:0"},
		Kernels: []string{"limit", "limit_text", "limit_blind", "limit_wrong"}})
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		log.Fatal(err)
	}
}
