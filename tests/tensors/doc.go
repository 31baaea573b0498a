// Package tensors compares random graphs of tensors, fused, operation by operation and compiled, with a plain
// interpreter of its own, their gradients with differences, and package tensor under attack: many goroutines,
// failures, small memory and large graphs.
//
//	SEED=7 GRAPHS=10000 DEVICES="opencl:0 cpu:reference" go test -v -run TestRandom ./tests/tensors
package tensors
