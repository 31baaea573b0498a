// Package accounts sums up executed operations ([runtime.Execution]). A [Receipt] lists the kernels of a piece of work
// so that it can be checked; [Stats] counts operations by their kind and by the processor that did them.
//
//	rec, err := dev.Run(ctx, kernel, grid, args...)
//	stats.Count(accounts.MatmulOp, rec, took)
//	fmt.Println(stats.Read().Summary())
//
// The program counts its operations itself. The Quantizer of package quant does it for its own work.
package accounts
