package access

import (
	"bytes"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"xabar/internal/testkit"
)

// startAndWait starts a command that becomes a gateway, and returns its URL when it
// takes connections. It ends with the test, with all its processes.
func startAndWait(t *testing.T, cmd *exec.Cmd, address string) string {
	t.Helper()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // waited for by the clean-up
	t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil && err != syscall.ESRCH {
			t.Error(err)
		}
		<-ended
		if t.Failed() {
			t.Logf("%s", output.String())
		}
	})
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(testkit.Patience); ; {
		if conn, err := net.Dial("tcp", address); err == nil {
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			return "http://" + address
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("the gateway does not listen")
		}
	}
}
