package programs

import "strings"

// known are differences that are explained, and not ours: what an error says, and why.
var known = []struct{ text, reason string }{}

// Known returns why an error is no finding, or "".
func Known(err string) string {
	for _, k := range known {
		if err != "" && strings.Contains(err, k.text) {
			return k.reason
		}
	}
	return ""
}
