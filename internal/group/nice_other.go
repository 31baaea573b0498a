//go:build !unix || aix || solaris || illumos

package group

// Nice has no effect here.
func Nice() {}
