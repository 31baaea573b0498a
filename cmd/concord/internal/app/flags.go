package app

// The values of flags.

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CheckDevice refuses an index that no device can have.
func CheckDevice(name string) error {
	name = strings.ToLower(strings.TrimSpace(name))
	backend, index, found := strings.Cut(name, ":")
	if !found {
		if n, err := strconv.Atoi(name); err == nil && n < 0 {
			return Usagef("device %s: a merged index counts from 0", name)
		}
		return nil
	}
	if _, err := strconv.ParseUint(index, 10, 31); err != nil && name != "cpu:reference" {
		return Usagef("device %s: %q is not an index: write %s:0", name, index, backend)
	}
	return nil
}

// Decimal takes the zeros in front of a number away, which Go would take for octal: 010 and 0_10 are ten. 0x,
// 0b and 0o stay.
func Decimal(text string) string {
	digits := strings.TrimLeft(text, "+-")
	sign := text[:len(text)-len(digits)]
	for len(digits) > 1 && digits[0] == '0' && (digits[1] == '_' || digits[1] >= '0' && digits[1] <= '9') {
		digits = strings.TrimPrefix(digits[1:], "_")
	}
	return sign + digits
}

// decimalValue is the value of a flag that is a number, from which Decimal takes zeros away.
type decimalValue struct{ pflag.Value }

// Set implements pflag.Value.
func (d decimalValue) Set(text string) error { return d.Value.Set(Decimal(text)) }

// decimalFlags makes all flags of whole numbers read decimal numbers.
func decimalFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if kind := f.Value.Type(); strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint") {
			f.Value = decimalValue{f.Value}
		}
	})
	for _, sub := range cmd.Commands() {
		decimalFlags(sub)
	}
}
