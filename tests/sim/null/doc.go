// Package null is a vendor that does nothing, behind the table of csrc/shim.h:
// the test double of internal/cgo. Memory is the host's, copies are done at once,
// kernels do not run, every object is counted and every entry can be made to
// fail. It is for one test at a time.
package null
