package runtime

// What drivers compile when a kernel is first launched, kept beside the kernel cache.

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/driver"
)

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
	data, err := file.Kept(p.dir, p.name)
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
	if err == nil && !bytes.Equal(data, p.given) {
		err = file.Keep(p.dir, p.name, data)
	}
	if err != nil {
		c.session.debug(1, "pipelines are not kept", "device", c.info.ID, "reason", err)
	}
}
