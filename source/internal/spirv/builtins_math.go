package spirv

import "github.com/concord-compute/concord/source/internal/tree"

// math writes the built-ins that are neither instructions nor about memory. ok is false for those that it does not
// know.
func (f *function) math(e *tree.Expr, name string) (value, bool) { return value{}, false }
