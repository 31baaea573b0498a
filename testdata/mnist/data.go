// Package mnistdata carries the 10,000 test images of MNIST with their labels
// (Yann LeCun, Corinna Cortes, Christopher J.C. Burges), in the original IDX
// format, gzip, unchanged. It holds the bytes only, so that they are in every
// binary that needs them; package internal/mnist reads them.
package mnistdata

import _ "embed" // for the two files

// Images is the file t10k-images-idx3-ubyte.gz. It must not be changed.
//
//go:embed t10k-images-idx3-ubyte.gz
var Images []byte

// Labels is the file t10k-labels-idx1-ubyte.gz. It must not be changed.
//
//go:embed t10k-labels-idx1-ubyte.gz
var Labels []byte
