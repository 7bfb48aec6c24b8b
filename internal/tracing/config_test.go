package tracing

import (
	"math"
	"strings"
	"testing"
)

func TestWhereSpansGo(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:4318":             "http://127.0.0.1:4318/v1/traces",
		"http://127.0.0.1:4318/":            "http://127.0.0.1:4318/v1/traces",
		"https://otlp.example.org/otlp":     "https://otlp.example.org/otlp/v1/traces",
		"http://127.0.0.1:4318/v1/traces":   "http://127.0.0.1:4318/v1/traces",
		"http://127.0.0.1:4318/v1/traces?a": "http://127.0.0.1:4318/v1/traces?a",
		"127.0.0.1:4318":                    "", "grpc://127.0.0.1:4317": "", "http://": "", "http://user:hidden@a b": "",
	} {
		got, err := tracesURL(endpoint)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s %v", endpoint, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("the password is in %v", err)
		}
	}
}

func TestOpenTelemetrysVariables(t *testing.T) {
	for _, name := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
	} {
		t.Setenv(name, "")
	}
	check := func(endpoint string, on, works bool) {
		t.Helper()
		if got := Configured(endpoint); got != on {
			t.Errorf("on: %v", got)
		}
		if err := Check(endpoint, 1); (err == nil) != works {
			t.Errorf("%v", err)
		}
	}
	check("", false, true)
	check("http://x", true, true)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	check("", false, true)
	check("http://x", true, false)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
	check("http://x", true, true)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "x:4318")
	check("", true, false)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://x:4318")
	check("", true, true)
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	check("", false, true)
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_SDK_DISABLED", "TRUE")
	check("", false, true)
	for _, ratio := range []float64{-0.1, 1.1, math.NaN()} {
		if Check("", ratio) == nil {
			t.Errorf("a ratio of %v", ratio)
		}
	}
}
