package socketio

import (
	"strings"
)

func lower(name string) string { return strings.ToLower(name) }

// joinHeader makes one string of a header's values, as Node does.
func joinHeader(name string, values []string) string {
	if name == "Cookie" {
		return strings.Join(values, "; ")
	}
	return strings.Join(values, ", ")
}
