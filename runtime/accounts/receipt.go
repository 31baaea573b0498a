package accounts

// Receipts: lists of the kernels that ran, which can be checked.

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/runtime"
)

// Receipt lists the kernels of executed operations, as evidence of a program's work.
type Receipt struct {
	ComputePath string   `json:"compute_path"`
	Kernels     []string `json:"kernels"`
}

// NewReceipt returns the receipt for executed operations.
func NewReceipt(executed []runtime.Execution) Receipt {
	r := Receipt{ComputePath: "real"}
	for _, e := range executed {
		r.Kernels = append(r.Kernels, e.KernelID)
	}
	return r
}

// Limits of a receipt.
const (
	maxReceiptKernels = 10_000
	maxKernelID       = 128
)

// Validate returns nil if the receipt is plausible. Its compute path is "real", it names at least one kernel and at
// most 10,000, and every name is 1 to 128 characters and does not contain "mock".
func (r Receipt) Validate() error {
	if r.ComputePath != "real" {
		return fmt.Errorf("receipt: compute path %q is not real: %w", r.ComputePath, runtime.ErrInvalidArgument)
	}
	if n := len(r.Kernels); n == 0 || n > maxReceiptKernels {
		return fmt.Errorf("receipt: %d kernels, 1 to %d expected: %w", n, maxReceiptKernels, runtime.ErrInvalidArgument)
	}
	for i, id := range r.Kernels {
		n := len([]rune(id))
		if n == 0 || n > maxKernelID || strings.TrimSpace(id) == "" || strings.Contains(strings.ToLower(id), "mock") {
			return fmt.Errorf("receipt: kernel %d has the id %.140q: %w", i, id, runtime.ErrInvalidArgument)
		}
	}
	return nil
}
