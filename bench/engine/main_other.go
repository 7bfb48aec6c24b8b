//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "engine: needs Linux: it reads /proc and uses epoll")
	os.Exit(2)
}
