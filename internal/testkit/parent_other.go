//go:build !linux

package testkit

import "syscall"

// dieWithParent has no means here: a child outlives a test process that is killed.
func dieWithParent() *syscall.SysProcAttr { return nil }
