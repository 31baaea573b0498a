package accounts_test

import (
	"fmt"
	"time"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/accounts"
)

// The records of Device.Run are the input; these are written by hand.
var (
	onGPU = runtime.Execution{Backend: "cuda", KernelID: "gemm", GPUExecuted: true}
	onCPU = runtime.Execution{Backend: "cpu", KernelID: "softmax"}
)

func ExampleStats() {
	var stats accounts.Stats
	stats.Count(accounts.MatmulOp, onGPU, 3*time.Millisecond)
	stats.Count(accounts.MatmulOp, onGPU, 5*time.Millisecond)
	stats.Count(accounts.OtherOp, onCPU, time.Millisecond)

	counts := stats.Read()
	fmt.Println(counts.TotalOperations, "operations,", counts.GPUOperations, "of them on a GPU")
	fmt.Println("a product takes", counts.AverageMatmulTimeMs(), "ms")
	// Output:
	// 3 operations, 2 of them on a GPU
	// a product takes 4 ms
}

func ExampleReceipt() {
	receipt := accounts.NewReceipt([]runtime.Execution{onGPU, onCPU})
	fmt.Println(receipt.ComputePath, receipt.Kernels, receipt.Validate())
	// Output:
	// real [gemm softmax] <nil>
}
