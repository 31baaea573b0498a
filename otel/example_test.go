package otel_test

import (
	"context"
	"fmt"
	"log"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	_ "github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/otel"
	"github.com/concord-compute/concord/runtime"
)

// Spans of a fill, as an exporter gets them.
func Example() {
	ctx := context.Background()
	exporter := tracetest.NewInMemoryExporter() // a real program has one that sends them to a collector
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter))

	device, err := runtime.Open(ctx, "cpu:0")
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	x, err := runtime.Alloc[float32](device, 1000)
	if err != nil {
		log.Fatal(err)
	}
	stop := device.Session().Observe(otel.New(ctx, provider.Tracer("concord")))
	if err := device.Stream().Fill(x, float32(1)); err != nil {
		log.Fatal(err)
	}
	if err := device.Sync(ctx); err != nil {
		log.Fatal(err)
	}
	stop()

	if err := provider.ForceFlush(ctx); err != nil {
		log.Fatal(err)
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name, len(span.Attributes) > 3)
	}
	// Unordered output:
	// fill true
	// sync false
}
