package runtime

import (
	"fmt"
	"testing"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/stretchr/testify/assert"
)

func TestRemedyTellsAMissingCompilerFromAMissingFeature(t *testing.T) {
	missing := fmt.Errorf("no C++ compiler: %w", driver.ErrNoCompiler)
	assert.ErrorIs(t, missing, ErrUnsupported)
	assert.Contains(t, Remedy(missing), "install the compiler")
	assert.Empty(t, Remedy(ErrUnsupported))
}
