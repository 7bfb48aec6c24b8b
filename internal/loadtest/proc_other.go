//go:build !linux

package loadtest

import "errors"

// usageOf can't measure others here.
func usageOf(processes []Process) (map[string]Usage, error) {
	if len(processes) > 0 {
		return nil, errors.New("processes can be measured on Linux only")
	}
	return nil, nil
}

func ownUsage() Usage { return Usage{} }
