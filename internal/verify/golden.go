package verify

// The step that compares tensors with PyTorch's results.

import (
	"context"

	"github.com/concord-compute/concord/internal/verify/golden"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/tensor"
)

// stepGolden judges one case of each operation, then another one, and so on, so that what its time cuts off is not all
// of an operation.
func stepGolden(ctx context.Context, e *Env, dev *runtime.Device) error {
	scope := tensor.NewScope(dev)
	cases, err := golden.Load()
	if err != nil {
		return err
	}
	types := []tensor.Type{tensor.F32}
	switch {
	case dev.Info().ID == "cpu:reference":
		types = []tensor.Type{tensor.F64} // it computes in nothing else
	case dev.Features().FP64:
		types = append(types, tensor.F64)
	}
	count := map[string]int{}
	var rounds [][]golden.Case
	for _, c := range cases {
		n := count[c.Op]
		count[c.Op]++
		if n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], c)
	}
	for n, list := range rounds {
		for _, typ := range types {
			// A compiler takes a second for what a device computes in a millisecond.
			if e.Quick && (n >= quickRounds || typ == tensor.F64 && n > 0) {
				continue
			}
			for _, c := range list {
				e.check(ctx, typ.String()+" "+c.Name, func(ctx context.Context) error {
					return either(c.Judge(ctx, scope, typ, golden.Plain, golden.Evaluated))
				})
			}
		}
	}
	if e.over(ctx) {
		return nil
	}
	return scope.Close()
}

// quickRounds is the number of cases of each operation on devices that are no cards.
const quickRounds = 3
