package kernels

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLaunchesHaveBounds: every family has bounds of launches with any arguments, or says that it knows none.
func TestLaunchesHaveBounds(t *testing.T) {
	var without []string
	for _, f := range Families() {
		if f.Bound == nil {
			without = append(without, f.ID)
		}
	}
	assert.Empty(t, without)
}
