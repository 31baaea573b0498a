package program

import (
	"testing"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
)

func TestMain(m *testing.M) {
	apptest.Main(m, Compile, Kernels, Occupancy, Run, Translate, devices.Cache, devices.List)
}
