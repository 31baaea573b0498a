package source

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/source/internal/render"
	"github.com/concord-compute/concord/source/internal/token"
)

// HostPart is one program of a translation unit for several: its rendering for Host without the
// prelude, which they share. CallsFMA says which prelude it needs: HostText takes parts that agree in it.
// Loops is that of the unit.
type HostPart struct {
	Text            string
	CallsFMA, Loops bool
}

// HostPart renders the program as a part of a translation unit. Errors, the context and the running time are
// as with RenderContext.
func (u *Unit) HostPart(ctx context.Context) (part HostPart, err error) {
	defer token.Settle(&err)
	m := token.NewMeter(ctx)
	if ctx.Err() != nil {
		return part, context.Cause(ctx)
	}
	if err := u.portable(Host); err != nil {
		return part, err
	}
	text, err := render.HostBody(m, u.tree, u.fibers())
	if err != nil {
		return part, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return HostPart{text, u.tree.Fused, u.tree.Loops}, nil
}

// HostText joins parts to one C++17 translation unit, which exports the table of part i by the name HostTable(i)
// in place of concord_program. A compiler reads the prelude once for all of them.
func HostText(parts []HostPart) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return render.HostBatch(texts, len(parts) > 0 && parts[0].CallsFMA)
}

// HostTable returns the name of the table of kernels of part i in a HostText.
func HostTable(i int) string { return render.BatchName(i) }
