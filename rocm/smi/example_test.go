package smi_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	_ "github.com/concord-compute/concord/rocm/smi"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/telemetry"
)

// Importing the package registers its reader. Without the vendor's library, driver or
// device the error says what is missing.
func Example() {
	for _, reader := range telemetry.Readers() {
		samples, err := reader.Sample(context.Background(), &driver.Config{})
		if err != nil && !errors.Is(err, driver.ErrNoDevice) {
			log.Print(err)
		}
		for _, s := range samples {
			if s.Power != nil { // nil: unknown
				log.Printf("%s: %.0f W", s.Name, *s.Power)
			}
		}
		fmt.Println(reader.Name())
	}
	// Output:
	// rocm
}
