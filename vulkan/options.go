package vulkan

import (
	"regexp"

	"github.com/concord-compute/concord/internal/cgo"
)

// options checks the options of a program. Those that permit something are ignored, since it is not done.
var options = cgo.Dialect{
	Own: regexp.MustCompile(`^-$`), // none
	Ignored: regexp.MustCompile(`^(-cl-(mad-enable|denorms-are-zero|finite-math-only|no-signed-zeros|opt-disable|` +
		`fast-relaxed-math|unsafe-math-optimizations|single-precision-constant|strict-aliasing|kernel-arg-info|` +
		`fp32-correctly-rounded-divide-sqrt|uniform-work-group-size|std=.*)|-ffast-math|-funsafe-math-optimizations|` +
		`-O[0123]?|-w|-W[^,]*)$`),
}.Translate
