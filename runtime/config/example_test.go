package config_test

import (
	"fmt"

	"github.com/concord-compute/concord/runtime/config"
	"github.com/concord-compute/concord/runtime/driver"
)

// Values that a program sets override the environment. runtime.New does this itself, so that
// programs need not call Merge.
func ExampleMerge() {
	env, err := config.ParseEnv([]string{"CONCORD_DEVICE=opencl:0", "CONCORD_MEMORY_LIMIT=2G"})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config.Merge(driver.Config{Device: "cpu:0"}, env)
	fmt.Println(c.Device, c.MemoryLimit)
	// Output:
	// cpu:0 2147483648
}

// A malformed value is an error that names its variable.
func ExampleParseEnv() {
	_, err := config.ParseEnv([]string{"CONCORD_MEMORY_LIMIT=lots"})
	fmt.Println(err)
	// Output:
	// CONCORD_MEMORY_LIMIT=lots: "lots" is not a positive size such as 4096, 512M or 2G: invalid argument
}
