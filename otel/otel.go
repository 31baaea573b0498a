// Package otel turns what Concord does into spans of OpenTelemetry: launches, copies, compiles, waits and regions
// beside the spans of the rest of a program. It is a module of its own, so that programs without it do not
// depend on OpenTelemetry.
//
//	stop := device.Session().Observe(otel.New(ctx, provider.Tracer("concord")))
//	defer stop()
package otel

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

// The attributes of spans. Those that are not known of an event are left out.
const (
	KindKey   = attribute.Key("concord.kind")   // the event's kind: "launch", "copy"
	DeviceKey = attribute.Key("concord.device") // "cuda:0"
	StreamKey = attribute.Key("concord.stream") // a number that tells the streams of a device apart
	ItemsKey  = attribute.Key("concord.items")  // of a launch, three numbers
	GroupKey  = attribute.Key("concord.group")  // likewise
	FlopsKey  = attribute.Key("concord.flops")  // operations
	BytesKey  = attribute.Key("concord.bytes")  // bytes that are read and written
	QueuedKey = attribute.Key("concord.queued") // nanoseconds from the call that queued the work to its start
	ClockKey  = attribute.Key("concord.clock")  // of work of a device: "device", or "host" if the device tells no times
	DetailKey = attribute.Key("concord.detail") // such as where a program came from
)

// Observer is a profile.Observer that makes a span of each event. It is safe for concurrent use.
type Observer struct {
	ctx    context.Context
	tracer trace.Tracer
	zero   time.Time // when the clock of events was 0
}

var _ profile.Observer = (*Observer)(nil)

// New returns an observer whose spans are children of the span in ctx, or roots if there is none. They have the
// times of the events, on the clock of the system as it was when New was called. How long a call of Observe
// takes is up to the tracer's processors: batches do not make the program wait.
func New(ctx context.Context, tracer trace.Tracer) *Observer {
	return &Observer{ctx, tracer, time.Now().Add(-time.Duration(driver.Now()))}
}

// Observe implements profile.Observer.
func (o *Observer) Observe(e profile.Event) {
	attributes := []attribute.KeyValue{KindKey.String(e.Kind.String())}
	if e.Device != "" {
		attributes = append(attributes, DeviceKey.String(e.Device))
	}
	if e.Stream != 0 {
		attributes = append(attributes, StreamKey.Int64(e.Stream))
	}
	if e.Items != [3]int{} {
		attributes = append(attributes, ItemsKey.IntSlice(e.Items[:]))
	}
	if e.Group != [3]int{} {
		attributes = append(attributes, GroupKey.IntSlice(e.Group[:]))
	}
	if e.Flops != 0 || e.Bytes != 0 {
		attributes = append(attributes, FlopsKey.Float64(e.Flops), BytesKey.Float64(e.Bytes))
	}
	if e.Queued != 0 {
		attributes = append(attributes, QueuedKey.Int64(e.Start-e.Queued))
	}
	if e.Kind.OnDevice() {
		clock := "host"
		if e.DeviceTime {
			clock = "device"
		}
		attributes = append(attributes, ClockKey.String(clock))
	}
	if e.Detail != "" {
		attributes = append(attributes, DetailKey.String(e.Detail))
	}
	at := func(ns int64) trace.SpanEventOption { return trace.WithTimestamp(o.zero.Add(time.Duration(ns))) }
	_, span := o.tracer.Start(o.ctx, cmp.Or(e.Name, e.Kind.String()), at(e.Start), trace.WithAttributes(attributes...))
	if e.Err != nil {
		span.RecordError(e.Err, at(e.End))
		span.SetStatus(codes.Error, fmt.Sprint(e.Err))
	}
	span.End(at(e.End))
}
