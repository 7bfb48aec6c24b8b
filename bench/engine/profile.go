//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profileEnv names a folder for CPU profiles of our own servers.
const profileEnv = "XABAR_BENCH_PROFILE"

// startProfile profiles this process until stop, if a folder is named.
func startProfile(kind string) (stop func() error, err error) {
	dir := os.Getenv(profileEnv)
	if dir == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.prof", kind, os.Getpid())))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
