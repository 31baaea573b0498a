//go:build cgo && unix

package cgo

// What drivers compile when a kernel is first launched, kept from process to process.

import (
	"crypto/sha256"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

var _ driver.PipelineKeeper = (*device)(nil)

// PipelinesName implements driver.PipelineKeeper.
func (d *device) PipelinesName() string {
	if !d.t.hasPipelines() {
		return ""
	}
	i := &d.info
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{i.Name, i.UUID, i.DriverVersion, i.Arch}))
	return fmt.Sprintf("%s-%x", d.b.v.Name, sum[:8])
}

// UsePipelines implements driver.PipelineKeeper.
func (d *device) UsePipelines(data []byte) error {
	const op = "use pipelines"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	return d.failed(op, d.t.putPipelines(d.c, data))
}

// Pipelines implements driver.PipelineKeeper.
func (d *device) Pipelines() ([]byte, error) {
	const op = "pipelines"
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.leave()
	data, f := d.t.pipelines(d.c)
	return data, d.failed(op, f)
}
