package main

import "strings"

// notes is what the changelog says of a version, without its heading. "" where it says nothing.
func notes(changelog, version string) string {
	heading := "## [" + strings.TrimPrefix(version, "v") + "]"
	var section []string
	inside := false
	for line := range strings.Lines(changelog) {
		switch {
		case strings.HasPrefix(line, "## ") && inside:
			inside = false
		case strings.HasPrefix(line, heading):
			inside = true
		case inside:
			section = append(section, line)
		}
	}
	text := strings.TrimSpace(strings.Join(section, ""))
	if text == "" {
		return ""
	}
	return text + "\n"
}
