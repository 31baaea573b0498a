package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSettings(t *testing.T) {
	const asleep = " OMP_WAIT_POLICY=PASSIVE OPENBLAS_THREAD_TIMEOUT=4"
	for _, tc := range []struct {
		processor    features
		blas         []string
		torch, faiss []string
	}{
		{"amd64 sse42 avx f16c fma3 avx2 avx512f avx512dq avx512bw avx512vl avx512vnni",
			[]string{"SKYLAKEX", "ZEN", "HASWELL", "COOPERLAKE"},
			[]string{"ATEN_CPU_CAPABILITY=avx2", "ATEN_CPU_CAPABILITY=avx512"},
			[]string{"OPENBLAS_CORETYPE=SKYLAKEX" + asleep, "OPENBLAS_CORETYPE=ZEN" + asleep, "OPENBLAS_CORETYPE=HASWELL" +
				asleep}},
		// AVX-512 of the first processors, without the extensions that the libraries use.
		{"amd64 avx f16c fma3 avx2 avx512f", []string{"ZEN", "HASWELL"},
			[]string{"ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2"},
			[]string{"OPENBLAS_CORETYPE=ZEN" + asleep, "OPENBLAS_CORETYPE=HASWELL" + asleep}},
		{"amd64 sse42 avx f16c fma3 avx2", []string{"ZEN", "HASWELL"},
			[]string{"ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2"},
			[]string{"OPENBLAS_CORETYPE=ZEN" + asleep, "OPENBLAS_CORETYPE=HASWELL" + asleep}},
		{"amd64 sse42 avx", []string{""}, []string{"ATEN_CPU_CAPABILITY=default"}, []string{asleep[1:]}},
		{"arm64 asimd", []string{""}, []string{"ATEN_CPU_CAPABILITY=default"}, []string{asleep[1:]}},
		{"", []string{""}, []string{"ATEN_CPU_CAPABILITY=default"}, []string{asleep[1:]}},
	} {
		assert.Equal(t, tc.blas, tc.processor.blasCores(), "%s", tc.processor)
		assert.Equal(t, tc.torch, tc.processor.peerSettings("torch"), "%s", tc.processor)
		assert.Equal(t, tc.faiss, tc.processor.peerSettings("faiss"), "%s", tc.processor)
	}
}

func TestHeldTo(t *testing.T) {
	const zen4, zen3 = features("amd64 avx f16c fma3 avx2 avx512f avx512dq avx512bw avx512vl"),
		features("amd64 avx f16c fma3 avx2")
	assert.Equal(t, zen3, zen4.heldTo("avx2"))
	assert.Equal(t, []int{16, 8}, []int{zen4.lanes(), zen4.heldTo("avx2").lanes()})
	for _, kernels := range []string{"", "avx512", "go"} {
		assert.Equal(t, zen4, zen4.heldTo(kernels), kernels)
	}
}
