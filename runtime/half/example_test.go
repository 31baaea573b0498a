package half_test

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/half"
)

// A float16 has 11 significant bits and ends at 65504.
func ExampleToFloat16() {
	for _, x := range []float64{0.1, 2049, 65504, 1e6} {
		h := half.ToFloat16(x)
		fmt.Printf("%g is stored as %#04x, which is %g\n", x, uint16(h), h.Float32())
	}
	// Output:
	// 0.1 is stored as 0x2e66, which is 0.099975586
	// 2049 is stored as 0x6800, which is 2048
	// 65504 is stored as 0x7bff, which is 65504
	// 1e+06 is stored as 0x7c00, which is +Inf
}

// A bfloat16 has the range of a float32 and 8 significant bits.
func ExampleToBFloat16() {
	b := half.ToBFloat16(1e6)
	fmt.Printf("%#04x %g\n", uint16(b), b.Float32())
	// Output:
	// 0x4974 999424
}
