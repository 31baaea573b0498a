// Package control calls the two control functions of a simulated vendor library that a test has
// open. They set faults and return counts of live objects and of calls; tests/sim/lib/fault.h
// documents them.
package control
