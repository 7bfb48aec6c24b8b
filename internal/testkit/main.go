package testkit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Patience is how long a test waits for something that takes moments on an idle
// machine. A test that ends by it has failed.
const Patience = 60 * time.Second

// Main runs the tests of a package, ends what they share (stop), removes what was
// built for them and fails when they leave goroutines behind.
func Main(m *testing.M, stop ...func() error) {
	code := m.Run()
	for _, f := range stop {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, "testkit:", err)
			code = 1
		}
	}
	if err := binary.remove(); err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "testkit: goroutines are left:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Context is the test's, with Patience as its deadline.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// CleanupContext is for t.Cleanup, when the test's own context has ended.
func CleanupContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	t.Cleanup(cancel)
	return ctx
}

// RaceDetector says whether the tests, and so the binary that they run, have the race detector: then
// everything takes several times as long.
func RaceDetector() bool { return raceDetector }

// Root is the module's folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}
