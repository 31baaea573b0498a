package render

// What the tests outside of the package need.
var (
	PreludeABI  = preludeABI
	PreludeText = preludeText
)
