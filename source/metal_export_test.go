package source

import "testing"

// MetalDriver is for the tests outside of the package.
func MetalDriver(t *testing.T) string { return metalDriver(t, "driver") }
