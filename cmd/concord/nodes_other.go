//go:build !unix

package main

// deviceNodes: there are none on this system.
func deviceNodes() []node { return []node{} }
