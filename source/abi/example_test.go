package abi_test

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/source/abi"
)

// A rendered program begins with the text, which has the number of its version.
func Example() {
	fmt.Println(strings.Contains(abi.Text, "#define CONCORD_HOST_ABI "))
	// Output: true
}
