package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release and commit are set by the build of a release or an image:
// -ldflags "-X main.release=v1.2.3 -X main.commit=0123456789ab".
var release, commit string

type versionCmd struct{}

func (versionCmd) Run(std streams) error {
	built := fmt.Sprintf("%s, %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if of := builtFrom(); of != "" {
		built = "commit " + of + ", " + built
	}
	_, err := fmt.Fprintf(std.out, "xabar %s (%s)\n", version(), built)
	return err
}

// version is the release, else the commit that was built, else "dev".
func version() string {
	if release != "" {
		return release
	}
	if of := builtFrom(); of != "" {
		return "dev-" + of
	}
	return "dev"
}

// builtFrom is the commit that was built, as far as the build knew it.
func builtFrom() string {
	const short = 12
	revision := commit
	if info, ok := debug.ReadBuildInfo(); ok && revision == "" {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				revision = setting.Value
			}
		}
	}
	return revision[:min(short, len(revision))]
}
