//go:build !linux

// Command gateway measures CPU by /proc and runs on Linux alone.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: it needs Linux")
	os.Exit(2)
}
