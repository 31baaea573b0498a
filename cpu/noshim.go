//go:build !cgo || !unix

package cpu

// The build without cgo, or on a system other than Unix: Go kernels only.

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

const hostABI = 0

var errNoShim = fmt.Errorf("only the catalog and registered Go kernels run: portable programs need "+
	"a binary that was built with CGO_ENABLED=1 and a C compiler, on a Unix system: %w", driver.ErrUnsupported)

// toolchain takes the place of the compiler, which cannot be used in this build.
type toolchain struct{ path, version string }

func (d *device) toolchain(context.Context) (*toolchain, error) {
	if d.reference {
		return nil, errReference
	}
	return nil, errNoShim
}

func (*toolchain) flags(bool) []string { return nil }

func (*toolchain) build(context.Context, string, bool, []string) ([]byte, string, error) {
	return nil, "", errNoShim
}

func probeCompiler(context.Context) (version string, tried []string) {
	return "", []string{"host compiler: not looked for: portable programs need cgo"}
}

func (d *device) load(*source.Unit, []byte) (*module, error) { return nil, errNoShim }

func (p *launch) runHost() error { return p.failed("", errNoShim) }
