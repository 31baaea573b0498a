package kernelcache

// The memory layer: a map and a list in order of use, bounded by bytes and count.

import (
	"container/list"
	"errors"

	"github.com/concord-compute/concord/runtime/driver"
)

// itemOverhead is the cost of an item besides its contents: map slot, list element, headers. It is
// an estimate, so that many tiny entries are not free.
const itemOverhead = 256

// item is the memory of one key: an entry, or the compiler's verdict.
type item struct {
	key   Key
	entry Entry
	err   error // not nil: the compiler refused the program
	size  int64
}

// memory is guarded by its Cache's mutex. The zero value is empty.
type memory struct {
	items map[Key]*list.Element // of *item
	order list.List             // most recently used first
	bytes int64
}

// get returns the item of a key, which becomes the most recently used one, or nil.
func (m *memory) get(key Key) *item {
	e, ok := m.items[key]
	if !ok {
		return nil
	}
	m.order.MoveToFront(e)
	return e.Value.(*item)
}

// add keeps an item, and removes the least recently used ones until the bounds hold. It returns the
// number of removed items. An item that alone exceeds the bounds is not kept, and removes none.
func (m *memory) add(it *item, maxBytes int64, maxItems int) (evicted int) {
	if it.size > maxBytes || maxItems < 1 {
		return 0
	}
	m.remove(it.key)
	if m.items == nil {
		m.items = make(map[Key]*list.Element)
	}
	m.items[it.key] = m.order.PushFront(it)
	m.bytes += it.size
	for m.bytes > maxBytes || m.order.Len() > maxItems {
		m.remove(m.order.Back().Value.(*item).key)
		evicted++
	}
	return evicted
}

// remove removes a key and reports whether it was there.
func (m *memory) remove(key Key) bool {
	e, ok := m.items[key]
	if ok {
		m.bytes -= m.order.Remove(e).(*item).size
		delete(m.items, key)
	}
	return ok
}

func newItem(key Key, entry Entry, err error) *item {
	size := int64(itemOverhead + len(entry.Binary) + len(entry.Log) + len(entry.Label))
	if build, ok := errors.AsType[*driver.BuildError](err); ok {
		size += int64(len(build.Source) + len(build.Target) + len(build.Log))
	}
	return &item{key: key, entry: entry, err: err, size: size}
}
