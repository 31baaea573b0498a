//go:build !unix

package devices

// deviceNodes returns nothing: this system has no such files.
func deviceNodes() []node { return []node{} }
