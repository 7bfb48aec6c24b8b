package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// builtBinary is xabar as the sources are now, built at most once in a process.
type builtBinary struct {
	once sync.Once
	dir  string
	err  error
}

var binary builtBinary

// Binary builds ./cmd/xabar, with the race detector if the tests have it, and
// returns the path. Main removes it.
func Binary() (string, error) {
	binary.once.Do(func() { binary.dir, binary.err = build() })
	return filepath.Join(binary.dir, "xabar"), binary.err
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "xabar-test-")
	if err != nil {
		return "", err
	}
	args := []string{"build", "-o", filepath.Join(dir, "xabar")}
	if raceDetector {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/xabar")...)
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build xabar: %w\n%s", err, out)
	}
	return dir, nil
}

func (b *builtBinary) remove() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}
