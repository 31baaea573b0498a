package kernels

// Families whose kernels are expressions: this package has what judges them, and package kernels/expr what they
// compute.

// outlines has those families by their IDs. Init functions fill it, and it never changes afterwards.
var outlines = map[string]Family{}

// outline adds a family that package kernels/expr completes and registers.
func outline(f Family) { outlines[f.ID] = f }

// Outline returns a family as far as this package has it: its names, types and cases, its float64 reference, and the
// check of arguments, but no text. Package kernels/expr defines the kernels of such families by expressions, and
// registers them: a program that imports that package, or package cpu, has them.
func Outline(id string) (Family, bool) {
	f, ok := outlines[id]
	return f, ok
}
