package tracing

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// signalPath is where a collector takes spans, behind the endpoint.
const signalPath = "/v1/traces"

// Configured says whether spans have somewhere to go: to endpoint, or without one to what
// OpenTelemetry's own variables name. OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none
// switch the latter off.
func Configured(endpoint string) bool {
	return endpoint != "" || fromEnv() != "" &&
		!strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") && os.Getenv("OTEL_TRACES_EXPORTER") != "none"
}

func fromEnv() string {
	if endpoint := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); endpoint != "" {
		return endpoint
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
}

// Check finds what can't work in a configuration, without asking the collector.
func Check(endpoint string, ratio float64) error {
	if ratio < 0 || ratio > 1 || ratio != ratio {
		return errors.New("--trace-sample must be from 0 to 1")
	}
	if !Configured(endpoint) {
		return nil
	}
	name := "--otlp-endpoint"
	if endpoint == "" {
		name, endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT", fromEnv()
	}
	if _, err := tracesURL(endpoint); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return checkProtocol()
}

// checkProtocol refuses what would fail later, and only in the log.
func checkProtocol() error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := os.Getenv(name); protocol {
		case "":
		case "http/protobuf":
			return nil
		default:
			return fmt.Errorf("%s: %q is not spoken here, only http/protobuf (port 4318 of most collectors)", name, protocol)
		}
	}
	return nil
}

// tracesURL is where spans go. The error does not repeat the endpoint: it may hold a
// password.
func tracesURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", errors.New("it must be a URL like http://127.0.0.1:4318")
	}
	if !strings.HasSuffix(u.Path, signalPath) {
		u = u.JoinPath(signalPath)
	}
	return u.String(), nil
}
