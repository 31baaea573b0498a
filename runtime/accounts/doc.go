// Package accounts sums up the records of what ran ([runtime.Record]): a [Receipt] lists the
// kernels of a piece of work so that others can check it, and [Stats] counts operations by
// their kind and by the processor that did them.
//
//	rec, err := dev.Run(ctx, kernel, grid, args...)
//	stats.Count(accounts.MatmulOp, rec, took)
//	fmt.Println(stats.Read().Summary())
//
// A program fills both itself: no other package of Concord does yet.
package accounts
