//go:build !unix

package main

// deviceNodes returns nothing: this system has no such files.
func deviceNodes() []node { return []node{} }
