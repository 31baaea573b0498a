//go:build cgo && unix

package conformance_test

func init() { hostPrograms = true }
