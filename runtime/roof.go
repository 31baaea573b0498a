package runtime

// The place of a device's roof, which package roof measures.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	goruntime "runtime"

	"github.com/concord-compute/concord/runtime/profile"
)

// KeptRoof returns the place of what package roof has measured of the device, its driver and its compiler. On disk it
// is in the directory roofs beside the kernel cache, and nowhere if that is off.
func (d *Device) KeptRoof(ctx context.Context) (*profile.KeptRoof, error) {
	const op = "roof"
	c, err := d.use(ctx, op)
	if err != nil {
		return nil, err
	}
	return c.keptRoof(ctx), nil
}

func (c *core) keptRoof(ctx context.Context) *profile.KeptRoof {
	dir := cacheDir(c.session.cfg)
	if dir != "" {
		dir = filepath.Join(dir, "roofs")
	}
	return profile.KeepRoof(c.roofKey(ctx), dir)
}

// roofKey names what a measurement depends on.
func (c *core) roofKey(ctx context.Context) string {
	i, cfg := &c.info, &c.session.cfg
	fields := []string{i.ID, i.Backend, i.Name, i.Vendor, i.UUID, i.PCI, i.Arch, i.DriverVersion,
		fmt.Sprint(i.ComputeUnits, i.ClockMHz, i.TotalMemory>>30, i.Simulated, cfg.CPUThreads, goruntime.GOMAXPROCS(0)),
		cfg.CPUKernels}
	if c.compiler != nil {
		if identity, err := c.compiler.Identity(ctx); err == nil {
			fields = append(fields, identity...)
		}
	}
	h := sha256.New()
	for _, f := range fields {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(f)))
		_, _ = io.WriteString(h, f)
	}
	return hex.EncodeToString(h.Sum(nil))
}
