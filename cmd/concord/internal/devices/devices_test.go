package devices

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/runtime"
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
	assert.Equal(t, []string{"cuda", "rocm", "metal", "opencl", "vulkan", "cpu"}, backends)
}

func TestCachesOf(t *testing.T) {
	for want, info := range map[string]runtime.Info{
		"48K 2M 260M": {L1Cache: 48 << 10, L2Cache: 2 << 20, L3Cache: 260 << 20},
		"32K 1536K":   {L1Cache: 32 << 10, L2Cache: 1536 << 10, CachesKnown: true},
		"? 50M":       {L2Cache: 50 << 20},
		"16M":         {MemoryCache: 16 << 20},
		"?":           {},
	} {
		assert.Equal(t, want, cachesOf(&info))
	}
}
