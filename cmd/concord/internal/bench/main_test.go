package bench

import (
	"testing"

	"github.com/concord-compute/concord/cmd/concord/internal/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m, Command) }
