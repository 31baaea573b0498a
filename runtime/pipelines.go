package runtime

// What drivers compile when a kernel is first launched, kept beside the kernel cache.

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

// mostPipelines bounds the file of a device in bytes. Drivers never forget what they have compiled, so that it is begun
// anew when it would be larger.
const mostPipelines = 64 << 20

// pipelines is what a device was given of an earlier process.
type pipelines struct {
	keeper    driver.PipelineKeeper // nil if nothing is kept
	dir, name string
	given     []byte
}

// recallPipelines gives the device what an earlier process kept. A file that is damaged, that others could have written
// or that the driver refuses is none.
func (c *core) recallPipelines() {
	keeper, ok := c.drv.(driver.PipelineKeeper)
	dir := cacheDir(c.session.cfg)
	if !ok || dir == "" || keeper.PipelinesName() == "" {
		return
	}
	p := &c.pipelines
	p.keeper, p.dir, p.name = keeper, filepath.Join(dir, "pipelines"), keeper.PipelinesName()
	data, err := file.KeptUpTo(p.dir, p.name, mostPipelines)
	if err == nil {
		err = keeper.UsePipelines(data)
	}
	if err == nil {
		p.given = data
	} else if !errors.Is(err, fs.ErrNotExist) {
		c.session.debug(1, "no pipelines", "device", c.info.ID, "file", filepath.Join(p.dir, p.name), "reason", err)
	}
}

// keepPipelines keeps what the device has compiled, if that is more than it was given.
func (c *core) keepPipelines() {
	p := &c.pipelines
	if p.keeper == nil {
		return
	}
	data, err := p.keeper.Pipelines()
	if err == nil && len(data) > 0 && !bytes.Equal(data, p.given) {
		err = file.KeepUpTo(p.dir, p.name, data, mostPipelines)
	}
	if errors.Is(err, driver.ErrTooLarge) {
		err = os.Remove(filepath.Join(p.dir, p.name))
	}
	if err != nil {
		c.session.debug(1, "pipelines are not kept", "device", c.info.ID, "reason", err)
	}
}
