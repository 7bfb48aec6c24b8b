//go:build !linux

package proc

import "syscall"

// EndWithParent does nothing here.
func EndWithParent() *syscall.SysProcAttr { return nil }
