package runtime

import (
	"context"
	"fmt"
)

// checkContext refuses a nil context before anything is done, in every function that takes one: it
// would panic later, with locks held.
func checkContext(ctx context.Context, op string) error {
	if ctx == nil {
		return fmt.Errorf("%s: context is nil: %w", op, ErrInvalidArgument)
	}
	return nil
}
