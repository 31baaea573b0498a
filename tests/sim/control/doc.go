// Package control reaches the two control symbols of a simulated vendor library
// that a test has open: faults on demand, and what is alive. tests/sim/lib/fault.h
// is their manual.
package control
