package mempool

// The holders of memory: for errors, for leaks, for profiles.

import (
	"cmp"
	"errors"
	"fmt"
	goruntime "runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// Holder is a group of live blocks: all of one size, or with tracking on all that were allocated at
// one place.
type Holder struct {
	Bytes  int64
	Blocks int
	Oldest time.Duration // 0 without tracking
	Tag    string
	Stack  []uintptr // of the allocation, for goruntime.CallersFrames; nil without tracking
}

// String returns a line such as "12.0 MiB in 3 blocks, main.load (load.go:31)".
func (h *Holder) String() string {
	s := fmt.Sprintf("%s in %d blocks", driver.FormatBytes(h.Bytes), h.Blocks)
	if h.Tag != "" {
		s += " (" + h.Tag + ")"
	}
	if at := h.Place(); at != "" {
		s += ", " + at
	}
	if h.Oldest > 0 {
		s += ", for " + h.Oldest.Round(time.Millisecond).String()
	}
	return s
}

// ours is the prefix of functions of Concord, which are not of interest in a stack.
const ours = "github.com/concord-compute/concord/runtime."

// Place is the first function of the stack outside of Concord's runtime, with file
// and line.
func (h *Holder) Place() string {
	if len(h.Stack) == 0 {
		return ""
	}
	frames := goruntime.CallersFrames(h.Stack)
	for {
		f, more := frames.Next()
		if !more || !strings.HasPrefix(f.Function, ours) || strings.HasSuffix(f.File, "_test.go") {
			return fmt.Sprintf("%s (%s:%d)", f.Function, f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
	}
}

// depth is the number of stack frames that are kept per allocation.
const depth = 32

// remember notes the stack that allocated a block.
func (p *Pool) remember(id ID) {
	var pcs [depth]uintptr
	n := goruntime.Callers(3, pcs[:]) // skips Callers, remember and Get
	h := &history{born: time.Now(), stack: slices.Clone(pcs[:n])}
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.find(id); b != nil {
		b.known, b.history = true, h
		liveProfile().Add(owner{p, id}, 2)
	}
}

// owner identifies a live block among those of all pools.
type owner struct {
	p  *Pool
	id ID
}

// ProfileName is the name of a profile of runtime/pprof: live blocks of all pools that were
// allocated with tracking on, by stack. It counts blocks; WriteProfile has their bytes.
const ProfileName = "concord_device_memory"

var liveProfile = sync.OnceValue(func() *pprof.Profile { return pprof.NewProfile(ProfileName) })

// SetTag names the purpose of a live block, in lists of holders.
func (p *Pool) SetTag(id ID, tag string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.find(id)
	if b == nil {
		return
	}
	if b.history == nil {
		b.known, b.history = true, &history{born: time.Now()}
	}
	b.history.tag = tag
	p.noteBlock(Tagged, b)
}

// Holders lists the holders of live blocks, the largest first.
func (p *Pool) Holders() []Holder { return p.holders(0) }

// holders lists the holders of blocks that are at least that old; 0 means all.
func (p *Pool) holders(age time.Duration) []Holder {
	found := map[string]*Holder{}
	for _, h := range p.holding(age) {
		key := fmt.Sprint(h.Stack, h.Tag)
		if h.Stack == nil {
			key += fmt.Sprint(h.asked)
		}
		who := found[key]
		if who == nil {
			who = &Holder{Tag: h.Tag, Stack: h.Stack}
			found[key] = who
		}
		who.Bytes += h.Bytes
		who.Blocks++
		who.Oldest = max(who.Oldest, h.Oldest)
	}
	list := make([]Holder, 0, len(found))
	for _, h := range found {
		list = append(list, *h)
	}
	slices.SortFunc(list, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.String(), b.String()))
	})
	return list
}

// holding is one live block with its holder.
type holding struct {
	Holder
	asked int64
}

// holding copies the live blocks, so that text is formatted after the lock is released.
func (p *Pool) holding(age time.Duration) []holding {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var list []holding
	for _, b := range p.table {
		h := b.history
		switch {
		case !b.live || age > 0 && (h == nil || now.Sub(h.born) < age):
		case h == nil:
			list = append(list, holding{Holder{Bytes: b.size}, b.asked})
		default:
			list = append(list, holding{Holder{Bytes: b.size, Oldest: now.Sub(h.born), Tag: h.tag, Stack: h.stack}, b.asked})
		}
	}
	return list
}

// Leaks lists the blocks that have been live for at least that long; only blocks that were
// allocated with tracking on have an age.
func (p *Pool) Leaks(age time.Duration) []Holder { return p.holders(max(age, 1)) }

// listed is the number of holders that an error names.
const listed = 5

// explain adds the holders of memory to an error. The caller holds p.growing, so the function of
// Watch must not be called here: it may call Get.
func (p *Pool) explain(err error) error {
	s := p.Counters()
	text := fmt.Sprintf("live %s in %d buffers, kept %s", driver.FormatBytes(s.Live), s.LiveBlocks,
		driver.FormatBytes(s.Cached))
	return fmt.Errorf("%w; %s%s", err, text, lines(p.Holders()))
}

// lines lists the first holders.
func lines(list []Holder) string {
	var b strings.Builder
	for i := range list[:min(listed, len(list))] {
		b.WriteString("\n\t" + list[i].String())
	}
	if more := len(list) - listed; more > 0 {
		fmt.Fprintf(&b, "\n\tand %d more", more)
	}
	return b.String()
}

// ErrLeak is the error of Close of a pool with live blocks.
var ErrLeak = errors.New("device memory is still in use")

// leaks returns an error that lists the live blocks, or nil.
func (p *Pool) leaks() error {
	s := p.Counters()
	if s.LiveBlocks == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s in %d blocks%s", ErrLeak, driver.FormatBytes(s.Live), s.LiveBlocks, lines(p.Holders()))
}
