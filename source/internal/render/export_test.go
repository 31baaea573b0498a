package render

// Identifiers for the tests in package render_test.
var (
	PreludeABI  = preludeABI
	PreludeText = preludeText
)
