package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDevices(t *testing.T) {
	_, stdout, _ := concord("devices", "--json")
	var backends []string
	for _, e := range document(t, stdout)["devices"].([]any) {
		entry := e.(map[string]any)
		backends = append(backends, entry["backend"].(string))
		if entry["state"] != "available" {
			assert.NotEmpty(t, entry["reason"], "%v says why", entry["backend"])
		}
	}
	assert.Equal(t, []string{"cuda", "rocm", "metal", "opencl", "cpu"}, backends)
}
