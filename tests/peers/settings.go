package main

// Settings with which a library may be faster. Only those that this processor supports are tried: a
// library that is told to use missing instructions crashes.

import (
	"slices"
	"strings"
)

// features lists the features of a processor in the form of runtime.Info.Arch, such as "amd64 avx2
// fma3 avx512f".
type features string

func (f features) has(all ...string) bool {
	words := strings.Fields(string(f))
	return !slices.ContainsFunc(all, func(word string) bool { return !slices.Contains(words, word) })
}

func (f features) avx2() bool { return f.has("amd64", "avx2", "fma3") }

func (f features) avx512() bool {
	return f.avx2() && f.has("avx512f", "avx512dq", "avx512bw", "avx512vl")
}

// heldTo returns the features that are left when the backend is held to a set of kernels, so that
// peers are measured without the instructions that the set does without.
func (f features) heldTo(kernels string) features {
	if kernels != "avx2" {
		return f
	}
	return features(strings.Join(slices.DeleteFunc(strings.Fields(string(f)), func(word string) bool {
		return strings.HasPrefix(word, "avx512")
	}), " "))
}

// lanes returns the number of floats of the widest register.
func (f features) lanes() int {
	if f.avx512() {
		return 16
	}
	return 8
}

// blasCores returns the kernels of OpenBLAS that are tried, because 0.3.21 does not know newer
// processors and uses slow kernels on them. If the list is empty, OpenBLAS chooses.
func (f features) blasCores() []string {
	switch {
	case f.avx512():
		return []string{"SKYLAKEX", "ZEN", "HASWELL", "COOPERLAKE"}
	case f.avx2():
		return []string{"ZEN", "HASWELL"}
	}
	return []string{""}
}

// peerSettings returns the environment variables of a Python process that are tried. FAISS uses
// OpenBLAS; if the threads of the two spun, they would delay each other.
func (f features) peerSettings(library string) (list []string) {
	const asleep = "OMP_WAIT_POLICY=PASSIVE OPENBLAS_THREAD_TIMEOUT=4"
	switch {
	case library == "torch and BLAS": // PyTorch's own threads may delay OpenBLAS likewise
		for _, own := range f.peerSettings("torch") {
			for _, core := range f.blasCores()[:1] {
				list = append(list, own+" "+asleep, own+" OPENBLAS_CORETYPE="+core, own+" OPENBLAS_CORETYPE="+core+" "+asleep)
			}
		}
	case library == "hnswlib":
		list = []string{asleep}
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
		list = []string{"ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2"}
	default:
		list = []string{"ATEN_CPU_CAPABILITY=default"}
	}
	return list
}
