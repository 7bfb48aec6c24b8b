package engineio

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(benchServerEnv); kind != "" {
		os.Exit(benchServer(kind)) // this process is the server of a benchmark
	}
	goleak.VerifyTestMain(m)
}
