package devices

import (
	"testing"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/cmd/concord/internal/program"
)

func TestMain(m *testing.M) { apptest.Main(m, Cache, List, Doctor, Top, program.Compile) }
