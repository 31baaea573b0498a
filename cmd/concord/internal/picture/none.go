//go:build nopicture

package picture

// canDraw says that this build draws none, and lacks the library that draws them and its fonts, which take a
// tenth of the time of a first build: what `make demo` builds.
const canDraw = false
