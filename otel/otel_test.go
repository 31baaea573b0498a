package otel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/otel"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/profile"
)

func provider(t *testing.T) (*tracetest.SpanRecorder, trace.Tracer) {
	spans := tracetest.NewSpanRecorder()
	p := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	return spans, p.Tracer("concord")
}

// An event's span has all that is known of it, and nothing else.
func TestObserve(t *testing.T) {
	spans, tracer := provider(t)
	ctx, parent := tracer.Start(t.Context(), "parent")
	before := time.Now()
	o := otel.New(ctx, tracer)
	now := driver.Now()
	o.Observe(profile.Event{Kind: profile.Launch, Name: "saxpy", Device: "cuda:0", Stream: 2, Queued: now - 50, Start: now,
		End: now + 2000, DeviceTime: true,
		Items: [3]int{64, 2, 1}, Group: [3]int{32, 1, 1}, Flops: 10, Bytes: 20, Detail: "ptx", Err: errors.New("broken")})
	o.Observe(profile.Event{Kind: profile.Region, Start: now, End: now})
	list := spans.Ended()
	require.Len(t, list, 2)
	s := list[0]
	assert.Equal(t, "saxpy", s.Name())
	assert.Equal(t, parent.SpanContext().SpanID(), s.Parent().SpanID())
	assert.Equal(t, 2*time.Microsecond, s.EndTime().Sub(s.StartTime()))
	assert.WithinDuration(t, before, s.StartTime(), time.Second)
	assert.Equal(t, sdk.Status{Code: codes.Error, Description: "broken"}, s.Status())
	require.Len(t, s.Events(), 1)
	assert.ElementsMatch(t, []attribute.KeyValue{otel.KindKey.String("launch"), otel.DeviceKey.String("cuda:0"),
		otel.StreamKey.Int64(2),
		otel.ItemsKey.IntSlice([]int{64, 2, 1}), otel.GroupKey.IntSlice([]int{32, 1, 1}), otel.FlopsKey.Float64(10),
		otel.BytesKey.Float64(20),
		otel.QueuedKey.Int64(50), otel.ClockKey.String("device"), otel.DetailKey.String("ptx")}, s.Attributes())
	assert.Equal(t, "region", list[1].Name())
	assert.Equal(t, []attribute.KeyValue{otel.KindKey.String("region")}, list[1].Attributes())
	assert.Equal(t, codes.Unset, list[1].Status().Code)
}

// Real work of cpu:0 comes as spans that lie within the region around it.
func TestSession(t *testing.T) {
	spans, tracer := provider(t)
	session, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	defer session.Close()
	d, err := session.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	unit, err := kernels.Unit("saxpy", d.Features())
	require.NoError(t, err)
	stop := session.Observe(otel.New(t.Context(), tracer))
	defer stop()
	_, end := session.Region(t.Context(), "step")
	p, err := d.Program(t.Context(), unit)
	require.NoError(t, err)
	k, err := p.Kernel("saxpy")
	require.NoError(t, err)
	x, err := runtime.Upload(t.Context(), d, make([]float32, 1000))
	require.NoError(t, err)
	y, err := runtime.Upload(t.Context(), d, make([]float32, 1000))
	require.NoError(t, err)
	require.NoError(t, d.Stream().Launch(k, runtime.Items(1000), float32(2), x, y, uint64(1000)))
	require.NoError(t, d.Sync(t.Context()))
	end()
	byKind := map[string][]sdk.ReadOnlySpan{}
	for _, s := range spans.Ended() {
		for _, a := range s.Attributes() {
			if a.Key == otel.KindKey {
				byKind[a.Value.AsString()] = append(byKind[a.Value.AsString()], s)
			}
		}
	}
	require.Len(t, byKind["region"], 1)
	require.Len(t, byKind["launch"], 1)
	assert.Len(t, byKind["compile"], 1)
	assert.Len(t, byKind["copy"], 2)
	region, launch := byKind["region"][0], byKind["launch"][0]
	assert.Contains(t, launch.Attributes(), otel.FlopsKey.Float64(2000))
	assert.Contains(t, launch.Attributes(), otel.ClockKey.String("device"))
	assert.False(t, launch.StartTime().Before(region.StartTime()))
	assert.False(t, launch.EndTime().After(region.EndTime()))
}
