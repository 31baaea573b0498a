package trace

import (
	"testing"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/cmd/concord/internal/devices"
	"github.com/concord-compute/concord/cmd/concord/internal/program"
)

func TestMain(m *testing.M) {
	apptest.Main(m, Command, devices.Doctor, devices.List, program.Compile, program.Run)
}
