package main

// Settings under which a library may be faster, of those that this processor can run: a
// library that is told to use instructions that the processor has not dies of it.

import (
	"slices"
	"strings"
)

// features is what a processor can do, in the words of runtime.Info.Arch, such as
// "amd64 avx2 fma3 avx512f".
type features string

func (f features) has(all ...string) bool {
	words := strings.Fields(string(f))
	return !slices.ContainsFunc(all, func(word string) bool { return !slices.Contains(words, word) })
}

func (f features) avx2() bool { return f.has("amd64", "avx2", "fma3") }

func (f features) avx512() bool {
	return f.avx2() && f.has("avx512f", "avx512dq", "avx512bw", "avx512vl")
}

// blasCores are the kernels of OpenBLAS that are tried: 0.3.21 does not know newer
// processors and falls back to slow ones. None: it chooses by itself.
func (f features) blasCores() []string {
	switch {
	case f.avx512():
		return []string{"SKYLAKEX", "ZEN", "HASWELL", "COOPERLAKE"}
	case f.avx2():
		return []string{"ZEN", "HASWELL"}
	}
	return []string{""}
}

// peerSettings are variables of the environment for a process of Python, to be tried.
// OpenBLAS is below FAISS; the threads of the two would keep each other waiting if they
// spun.
func (f features) peerSettings(library string) (list []string) {
	const asleep = "OMP_WAIT_POLICY=PASSIVE OPENBLAS_THREAD_TIMEOUT=4"
	switch {
	case library == "faiss":
		for _, core := range f.blasCores() {
			switch core {
			case "COOPERLAKE": // as SKYLAKEX, but for bfloat16
			case "":
				list = append(list, asleep)
			default:
				list = append(list, "OPENBLAS_CORETYPE="+core+" "+asleep)
			}
		}
	case f.avx512():
		list = []string{"ATEN_CPU_CAPABILITY=avx2", "ATEN_CPU_CAPABILITY=avx512"}
	case f.avx2():
		list = []string{"ATEN_CPU_CAPABILITY=avx2"}
	default:
		list = []string{"ATEN_CPU_CAPABILITY=default"}
	}
	return list
}
