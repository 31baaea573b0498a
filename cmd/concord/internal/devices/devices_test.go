package devices

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

func TestDevices(t *testing.T) {
	_, stdout, _ := apptest.Run("devices", "--json")
	var backends []string
	for _, e := range apptest.Document(t, stdout)["devices"].([]any) {
		entry := e.(map[string]any)
		backends = append(backends, entry["backend"].(string))
		if entry["state"] != "available" {
			assert.NotEmpty(t, entry["reason"], "%v says why", entry["backend"])
		}
	}
	assert.Equal(t, []string{"cuda", "rocm", "metal", "opencl", "cpu"}, backends)
}
