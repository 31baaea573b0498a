package checks

import (
	"testing"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
	"github.com/concord-compute/concord/cmd/concord/internal/bench"
)

func TestMain(m *testing.M) { apptest.Main(m, Demo, Parity, Verify, bench.Command) }
