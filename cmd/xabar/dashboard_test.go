package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"go.yaml.in/yaml/v4"

	"xabar/internal/testkit"
)

// query is an expression of the dashboard or of an alert.
type query struct{ where, expr string }

// deployFile reads a file under deploy.
func deployFile(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{testkit.Root(), "deploy"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// dashboardQueries are those of every panel, variable and annotation.
func dashboardQueries(t *testing.T) []query {
	t.Helper()
	type target struct{ Expr string }
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []target
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Annotations struct {
			List []struct{ Name, Expr string }
		}
	}
	if err := json.Unmarshal(deployFile(t, "grafana", "xabar.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	var all []query
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q asks nothing", p.Title)
		}
		for _, q := range p.Targets {
			if !strings.Contains(q.Expr, `instance=~"$instance"`) {
				t.Errorf("the panel %q does not follow the choice of nodes: %s", p.Title, q.Expr)
			}
			all = append(all, query{p.Title, strings.ReplaceAll(q.Expr, "$__rate_interval", "5m")})
		}
	}
	for _, v := range dashboard.Templating.List {
		if inner, ok := strings.CutPrefix(v.Definition, "label_values("); ok {
			metric, _, _ := strings.Cut(inner, ",")
			all = append(all, query{"variable " + v.Name, metric})
		}
	}
	for _, a := range dashboard.Annotations.List {
		all = append(all, query{"annotation " + a.Name, a.Expr})
	}
	if len(all) < 50 {
		t.Fatalf("the dashboard has %d queries", len(all))
	}
	return all
}

// alert is a rule of deploy/prometheus/alerts.yml.
type alert struct {
	Alert, Expr string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(deployFile(t, "prometheus", "alerts.yml"), &file); err != nil {
		t.Fatal(err)
	}
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 10 {
		t.Fatalf("there are %d alerts", len(all))
	}
	return all
}

// checkQueries: every metric that the dashboard and the alerts name is served, with the
// labels that they choose and group by, and with the values that they compare with.
func checkQueries(t *testing.T, families map[string]*family, alone bool) {
	t.Helper()
	queries := dashboardQueries(t)
	for _, a := range alerts(t) {
		queries = append(queries, query{a.Alert, a.Expr})
	}
	for _, q := range queries {
		parsed, err := metricsql.Parse(q.expr)
		if err != nil {
			t.Errorf("%s: %v: %s", q.where, err, q.expr)
			continue
		}
		labels := map[string]bool{"instance": true, "job": true}
		metricsql.VisitAll(parsed, func(e metricsql.Expr) {
			if metric, ok := e.(*metricsql.MetricExpr); ok {
				checkSelector(t, q, metric, families, labels, alone)
			}
		})
		metricsql.VisitAll(parsed, func(e metricsql.Expr) {
			aggregate, ok := e.(*metricsql.AggrFuncExpr)
			if !ok {
				return
			}
			for _, label := range aggregate.Modifier.Args {
				if !labels[label] {
					t.Errorf("%s groups by %s, which nothing there has: %s", q.where, label, q.expr)
				}
			}
		})
	}
}

// checkSelector looks at one metric in a query, and adds its labels to labels.
func checkSelector(t *testing.T, q query, metric *metricsql.MetricExpr, families map[string]*family, labels map[string]bool, alone bool) {
	t.Helper()
	for _, filters := range metric.LabelFilterss {
		name := ""
		if len(filters) > 0 && filters[0].Label == "__name__" {
			name = filters[0].Value
		}
		f := familyOf(families, name)
		switch {
		case name == "up": // Prometheus' own
			continue
		case f == nil && alone && strings.HasPrefix(name, "xabar_redis_"):
			labels["le"] = true
			continue
		case f == nil:
			t.Errorf("%s asks for %q, which is not served: %s", q.where, name, q.expr)
			continue
		}
		for label := range f.labels {
			labels[label] = true
		}
		labels["le"] = labels["le"] || strings.HasSuffix(name, "_bucket")
		for _, filter := range filters[1:] {
			checkFilter(t, q, name, f, filter)
		}
	}
}

func checkFilter(t *testing.T, q query, name string, f *family, filter metricsql.LabelFilter) {
	t.Helper()
	if filter.Label == "instance" || filter.Label == "job" {
		return
	}
	values := f.labels[filter.Label]
	if values == nil {
		t.Errorf("%s chooses by %s, which %s does not have: %s", q.where, filter.Label, name, q.expr)
		return
	}
	for value := range values {
		if filter.Value == value || filter.IsRegexp && regexp.MustCompile("^(?:"+filter.Value+")$").MatchString(value) {
			return
		}
	}
	t.Errorf("%s chooses %s %q, which %s does not have: %s", q.where, filter.Label, filter.Value, name, q.expr)
}

// familyOf finds what a series belongs to.
func familyOf(families map[string]*family, series string) *family {
	if f := families[series]; f != nil {
		return f
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(series, suffix); ok && families[base] != nil && families[base].kind != "counter" && families[base].kind != "gauge" {
			return families[base]
		}
	}
	return nil
}

// TestAlertsAreExplained: each has a severity, a place in the guide, and a test.
func TestAlertsAreExplained(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join(testkit.Root(), "docs", "guides", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests struct {
		Tests []struct {
			Alerts []struct {
				Alertname string
				Expected  []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(deployFile(t, "prometheus", "alerts_test.yml"), &tests); err != nil {
		t.Fatal(err)
	}
	fires := map[string]bool{}
	for _, test := range tests.Tests {
		for _, a := range test.Alerts {
			fires[a.Alertname] = fires[a.Alertname] || len(a.Expected) > 0
		}
	}
	headings := regexp.MustCompile(`(?m)^### (Xabar\w+)$`).FindAllStringSubmatch(string(guide), -1)
	for _, a := range alerts(t) {
		if !slices.Contains([]string{"page", "ticket", "info"}, a.Labels["severity"]) {
			t.Errorf("%s has the severity %q", a.Alert, a.Labels["severity"])
		}
		if a.Annotations["runbook"] != "docs/guides/monitoring.md#"+strings.ToLower(a.Alert) || a.Annotations["summary"] == "" {
			t.Errorf("%s says %v", a.Alert, a.Annotations)
		}
		if !slices.ContainsFunc(headings, func(h []string) bool { return h[1] == a.Alert }) {
			t.Errorf("docs/guides/monitoring.md does not explain %s", a.Alert)
		}
		if !fires[a.Alert] {
			t.Errorf("no test in alerts_test.yml lets %s fire", a.Alert)
		}
	}
	for _, h := range headings {
		if !slices.ContainsFunc(alerts(t), func(a alert) bool { return a.Alert == h[1] }) {
			t.Errorf("docs/guides/monitoring.md explains %s, which is no alert", h[1])
		}
	}
}
