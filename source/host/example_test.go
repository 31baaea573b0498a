package host_test

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/source/host"
)

// A rendered program begins with abi.h, which has the number of its version.
func Example() {
	text, err := host.Files.ReadFile("abi.h")
	fmt.Println(strings.Contains(string(text), "#define CONCORD_HOST_ABI "), err)
	// Output: true <nil>
}
