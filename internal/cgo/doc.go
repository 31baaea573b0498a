// Package cgo is the Go side of what Concord calls in C: the dynamic loader.
package cgo
