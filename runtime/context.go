package runtime

import (
	"context"
	"fmt"
)

// checkContext refuses a nil context before anything is done, as every function that
// takes one does: it would panic somewhere below, with locks held.
func checkContext(ctx context.Context, op string) error {
	if ctx == nil {
		return fmt.Errorf("%s: context is nil: %w", op, ErrInvalidArgument)
	}
	return nil
}
