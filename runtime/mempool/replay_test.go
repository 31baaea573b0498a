package mempool

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
)

// logUniform is a size from 64 B to 256 MiB, each order of magnitude as likely.
func logUniform(r *rand.Rand) int64 {
	return int64(math.Exp(math.Log(64) + r.Float64()*math.Log(256<<20/64)))
}

// A million operations of random sizes: memory that is reserved stays near the
// largest that was ever live, and nearly every get is served without the driver.
func TestReplayRandom(t *testing.T) {
	ops := 1_000_000
	if testing.Short() {
		ops = 100_000
	}
	for _, tc := range []struct {
		name string
		live func(i int) int // how many blocks there should be
	}{
		{"few", func(int) int { return 30 }},
		{"steady", func(int) int { return 400 }},
		{"waves", func(i int) int { return 50 + int(300*(1+math.Sin(float64(i)/20000))) }},
		{"phases", func(i int) int { return 20 + 300*(i/50000%2) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			src := &fakeSource{}
			p := New(src, Options{SoftLimit: 1 << 40})
			var ids []ID
			for i := range ops {
				if n := tc.live(i); len(ids) > 0 && r.IntN(2*n) < len(ids) {
					j := r.IntN(len(ids))
					require.NoError(t, p.Put(ids[j], nil, 0))
					ids[j] = ids[len(ids)-1]
					ids = ids[:len(ids)-1]
					continue
				}
				b, err := p.Get(logUniform(r), driver.OnDevice, nil)
				require.NoError(t, err)
				ids = append(ids, b.ID)
			}
			s := p.Stats()
			ratio := float64(s.PeakReserved) / float64(s.PeakLive)
			t.Logf("peak live %s, reserved %.3f of it, hits %.4f, driver %d, internal %.4f", driver.FormatBytes(s.PeakLive), ratio, s.Efficiency(), s.DriverAllocs, s.Internal())
			assert.LessOrEqual(t, ratio, 1.35)
			assert.GreaterOrEqual(t, s.Efficiency(), 0.95)
			assert.Equal(t, src.held, s.Reserved)
			for _, id := range ids {
				require.NoError(t, p.Put(id, nil, 0))
			}
			require.NoError(t, p.Close())
			assert.Zero(t, src.held)
			assert.NoError(t, src.wrong)
		})
	}
}
