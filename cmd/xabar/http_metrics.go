package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// measured counts the requests of the HTTP API.
func measured(r *registry, next http.Handler) http.Handler {
	r.part = partHTTP
	requests := r.counters("xabar_http_requests_total", "Requests of the HTTP API, by method and status; 429 is a limit's.", "method", "code")
	duration := r.histogram("xabar_http_request_duration_seconds", "Time until they were answered, by method.", latencies, "method")
	// Methods that HTTP does not know become one label value.
	return promhttp.InstrumentHandlerCounter(requests, promhttp.InstrumentHandlerDuration(duration, next))
}
