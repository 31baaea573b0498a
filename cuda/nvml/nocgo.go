//go:build !cgo

package nvml

const reason = "not in this build: rebuild with -tags cuda, CGO_ENABLED=1 and a C compiler"
