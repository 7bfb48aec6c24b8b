package main

import (
	"fmt"
	"runtime/debug"
)

// release is set by the build of a release: -ldflags "-X main.release=1.2.3".
var release string

type versionCmd struct{}

func (versionCmd) Run(std streams) error {
	_, err := fmt.Fprintln(std.out, "xabar", version())
	return err
}

// version is the release, else the commit that was built, else "dev".
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && len(setting.Value) >= 12 {
				return "dev-" + setting.Value[:12]
			}
		}
	}
	return "dev"
}
