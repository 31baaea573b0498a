// Package null is a vendor that does nothing: a test double for internal/cgo that implements the
// table of csrc/shim.h. Memory is the host's, copies are done at once, kernels do not run, every
// object is counted and every entry can be made to fail. Only one test at a time may use it.
package null
