package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// healthCmd is the health check of container images that hold no shell and no curl.
type healthCmd struct {
	AdminListen string        `default:"127.0.0.1:3001" placeholder:"ADDRESS" help:"Where serve listens for it: the same flag and variable."`
	Live        bool          `env:"-" help:"Ask /healthz, whether the process lives, instead of /readyz, whether it can serve."`
	Timeout     time.Duration `env:"-" default:"5s" placeholder:"TIME" help:"How long to wait for the answer."`
}

// maxHealthAnswer is how much of an answer is read, in bytes.
const maxHealthAnswer = 64 << 10

// Run prints the answer of the gateway on this machine. Any other status than 200 is an error.
func (c *healthCmd) Run(ctx context.Context, std streams) error {
	address, err := reachable(c.AdminListen)
	if err != nil {
		return usageError{err}
	}
	path := "/readyz"
	if c.Live {
		path = "/healthz"
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	// Nothing of the environment: a proxy is not this machine.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxHealthAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %s", request.URL, response.Status, strings.TrimSpace(string(answer)))
	}
	_, err = fmt.Fprintln(std.out, strings.TrimSpace(string(answer)))
	return err
}

// reachable is where to connect to something that listens at this address: one that
// means "all addresses" becomes loopback.
func reachable(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("--admin-listen: %q is not host:port", listen)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "", err == nil && ip.Is4() && ip.IsUnspecified():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}
