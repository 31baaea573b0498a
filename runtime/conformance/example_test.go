package conformance_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/conformance"
)

// printer is a T of a program. It prints what a row says, and panics with this type to end the row.
type printer struct{ ctx context.Context }

func (p printer) Context() context.Context          { return p.ctx }
func (p printer) Errorf(format string, args ...any) { fmt.Printf("failed: "+format+"\n", args...) }
func (p printer) Fatalf(format string, args ...any) { p.Errorf(format, args...); panic(p) }
func (p printer) Skipf(format string, args ...any) {
	fmt.Printf("skipped: "+format+"\n", args...)
	panic(p)
}

// The rows about kinds of memory that need no compiler, on cpu:0.
func Example() {
	open := func(t conformance.T) *runtime.Device {
		d, err := runtime.Open(t.Context(), "cpu:0")
		if err != nil {
			log.Fatal(err)
		}
		return d
	}
	check := func(r conformance.Row) {
		defer func() {
			if end := recover(); end != nil {
				_ = end.(printer) // any other panic goes on
			}
		}()
		r.Check(printer{context.Background()}, open, conformance.Exceptions{})
	}
	for _, r := range conformance.Rows() {
		if strings.HasPrefix(r.Name, "kinds/") && !r.Portable {
			fmt.Println(r.Name)
			check(r)
		}
	}
	// Output:
	// kinds/every_call
	// kinds/host_view
	// kinds/pinned_copies
	// kinds/prefetch
}
