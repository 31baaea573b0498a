// Package exprs compares the results of all evaluators for random expressions: the block program in vector
// instructions and in Go, the compiled text, and the float64 evaluation with its bound.
//
//	EXPRS=10000 COMPILED=500 DEVICES=sim-cuda:0 go test -v ./tests/exprs
package exprs
