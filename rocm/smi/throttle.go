//go:build cgo && rocm && linux

package smi

import (
	"fmt"
	"slices"
)

// causes are the bits of the kernel's device-independent throttle status, combined to ranges: a
// user needs to know the kind of cause, but not which of four voltage regulators reported it.
var causes = []struct {
	first, last int
	word        string
}{
	{0, 7, "power cap"},
	{16, 23, "current limit"},
	{32, 33, "temperature"},
	{34, 34, "memory temperature"},
	{35, 35, "temperature"},
	{36, 36, "hotspot temperature"},
	{37, 37, "temperature"},
	{38, 41, "regulator temperature"},
	{42, 43, "coolant temperature"},
	{44, 45, "regulator temperature"},
	{46, 47, "processor hot"},
	{56, 56, "power management"},
	{57, 57, "reliability limit"},
}

// words returns the names of the causes that are set, each once. It never returns nil.
func words(mask uint64) []string {
	list := []string{}
	for _, c := range causes {
		bits := (uint64(1)<<(c.last-c.first+1) - 1) << c.first
		if mask&bits != 0 && !slices.Contains(list, c.word) {
			list = append(list, c.word)
		}
		mask &^= bits
	}
	if mask != 0 {
		list = append(list, fmt.Sprintf("unknown reason %#x", mask))
	}
	return list
}
