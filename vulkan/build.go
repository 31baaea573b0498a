package vulkan

import (
	"context"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

const compilerVersion = "spirv 1"

func build(ctx context.Context, unit *source.Unit, target string, options []string) (code []byte, log string, err error) {
	return nil, "", fmt.Errorf("no compiler yet: %w", driver.ErrUnsupported)
}

func options(o []string) ([]string, error) { return o, nil }
