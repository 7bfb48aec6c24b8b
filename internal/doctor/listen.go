package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// Addresses looks at where the gateway would listen: free, or taken by one that runs.
func Addresses(ctx context.Context, r *Report, public, admin string) {
	s := r.Section("addresses")
	listenOn(ctx, s, "public", "--listen", public)
	if !listenOn(ctx, s, "admin", "--admin-listen", admin) {
		running(ctx, s, admin)
	}
	if host, _, err := net.SplitHostPort(admin); err == nil && (host == "" || net.ParseIP(host).IsUnspecified() || isPublicAddress(host)) {
		s.Warn("admin", "listen on 127.0.0.1 or a private address, or keep everybody else out by a firewall", "--admin-listen %s: whoever reaches it reads metrics, without a password", admin)
	}
}

// listenOn is true when the address is free.
func listenOn(ctx context.Context, s Section, name, flag, address string) bool {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		s.OK(name, "%s is free", address)
		err = listener.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		s.OK(name, "%s is in use, by the gateway if it runs", address)
		return false
	case errors.Is(err, syscall.EACCES):
		s.Problem(name, "use a port from 1024 on, or give the binary CAP_NET_BIND_SERVICE", "%s %s: this user may not listen there", flag, address)
		return true
	}
	if err != nil {
		s.Problem(name, "use an address of this machine", "%s %s: %v", flag, address, err)
	}
	return true
}

// running asks the gateway that seems to run how it is.
func running(ctx context.Context, s Section, admin string) {
	host, port, err := net.SplitHostPort(admin)
	if err != nil {
		return
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		s.Problem("running", "look at --admin-listen", "%v", err)
		return
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Problem("running", "find out what listens there", "what listens on %s does not answer /readyz: %s", admin, short(err))
		return
	}
	defer response.Body.Close()
	var answer struct {
		Status  string   `json:"status"`
		Reasons []string `json:"reasons"`
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil || json.Unmarshal(body, &answer) != nil || answer.Status == "" {
		s.Problem("running", "find out what listens there", "what listens on %s is no gateway", admin)
		return
	}
	reasons := strings.Join(answer.Reasons, ", ")
	switch answer.Status {
	case "ok":
		s.OK("running", "a gateway runs here and is ready")
	case "degraded":
		s.Warn("running", "see redis below, and docs/guides/several-nodes.md", "a gateway runs here and is degraded: %s", reasons)
	default:
		s.Problem("running", "see its log", "a gateway runs here and is %s: %s", answer.Status, reasons)
	}
}
