package ui

// Progress on standard error, only on a terminal.

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress is a bar, or nothing without a terminal. The nil progress does nothing.
type Progress struct {
	all   *mpb.Progress
	bar   *mpb.Bar
	label atomic.Value // string
}

// NewProgress starts a bar of that many steps on w; 0 when they are not known yet.
func NewProgress(w io.Writer, steps int) *Progress {
	if !IsTerminal(w) {
		return nil
	}
	p := &Progress{}
	p.label.Store("")
	p.all = mpb.New(mpb.WithOutput(w), mpb.WithWidth(60))
	p.bar = p.all.AddBar(int64(steps),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(counted)),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.label.Load().(string) })))
	return p
}

// counted returns a text such as "3/10", or "" while the number of steps is unknown.
func counted(s decor.Statistics) string {
	if s.Total <= 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d ", s.Current, s.Total)
}

// Doing shows the name of the next step.
func (p *Progress) Doing(what string) {
	if p != nil {
		p.label.Store(what)
	}
}

// Step counts one step as done.
func (p *Progress) Step() {
	if p != nil {
		p.bar.Increment()
	}
}

// At sets the position and the total.
func (p *Progress) At(done, total int) {
	if p != nil {
		p.bar.SetTotal(int64(total), false)
		p.bar.SetCurrent(int64(done))
	}
}

// End removes the bar.
func (p *Progress) End() {
	if p != nil {
		p.bar.Abort(true)
		p.all.Wait()
	}
}
