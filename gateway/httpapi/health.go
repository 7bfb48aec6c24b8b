package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyTimeout bounds all checks of one readiness probe.
const readyTimeout = 2 * time.Second

// Check is one thing that a node needs. Required: without it the node is not
// ready; else it is only degraded.
type Check struct {
	Name     string // what /readyz says when it fails
	Required bool
	Probe    func(ctx context.Context) error
}

// Health knows whether this node can serve. Make it with NewHealth.
type Health struct {
	checks   []Check
	draining atomic.Bool
	log      *slog.Logger
}

// NewHealth makes a Health of the checks.
func NewHealth(log *slog.Logger, checks ...Check) *Health { return &Health{checks: checks, log: log} }

// Drain makes the node not ready for good.
func (h *Health) Drain() { h.draining.Store(true) }

// readiness is the answer of /readyz.
type readiness struct {
	Status  string   `json:"status"` // "ok", "degraded", "draining" or "unavailable"
	Reasons []string `json:"reasons"`
}

// ready probes everything at the same time.
func (h *Health) ready(ctx context.Context) (int, readiness) {
	if h.draining.Load() {
		return http.StatusServiceUnavailable, readiness{"draining", []string{"draining"}}
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	results := make([]chan error, len(h.checks))
	for i, check := range h.checks {
		results[i] = make(chan error, 1)
		go func() { results[i] <- check.Probe(ctx) }() // ends with ctx, the result is kept
	}
	answer, status := readiness{"ok", []string{}}, http.StatusOK
	for i, check := range h.checks {
		err := <-results[i]
		if err == nil {
			continue
		}
		h.log.Warn("not healthy", "check", check.Name, "error", err)
		answer.Reasons = append(answer.Reasons, check.Name)
		if check.Required {
			status, answer.Status = http.StatusServiceUnavailable, "unavailable"
		} else if status == http.StatusOK {
			answer.Status = "degraded"
		}
	}
	return status, answer
}

// NewAdmin makes the handler of the admin address: /healthz says that the process
// lives, /readyz whether it can serve, /metrics everything that was
// registered, and /debug/pprof/ has the profiles of the process.
func NewAdmin(health *Health, metrics prometheus.Gatherer, log *slog.Logger) http.Handler {
	e := newEcho(log, nil)
	e.GET("/healthz", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
	})
	e.GET("/readyz", func(c echo.Context) error {
		status, answer := health.ready(c.Request().Context())
		return c.JSON(status, answer)
	})
	e.GET("/metrics", echo.WrapHandler(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{})))
	return withProfiles(e)
}
