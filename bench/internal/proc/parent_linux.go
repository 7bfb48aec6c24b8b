package proc

import "syscall"

// EndWithParent has the kernel end a child whose parent was killed. The parent is the
// thread that starts it: that has to be one that stays, as the main thread does after
// runtime.LockOSThread in an init function.
func EndWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
