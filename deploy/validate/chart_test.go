//go:build chart

// Kubernetes' types take a while to compile, and helm to build: the quick half of the checks does without.

package validate

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

const (
	chart      = root + "/deploy/helm/xabar"
	kubernetes = "1.34" // that helm is to render for
)

// tool runs the pinned program that a variable names, and returns its standard output.
func tool(t *testing.T, variable string, args ...string) (string, error) {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s does not name the program to use: run make validate-deploy", variable)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %v: %w\n%s%s", variable, args, err, out.String(), stderr.String())
	}
	return out.String(), nil
}

func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return tool(t, "HELM", args...)
}

// objects are what the chart makes of values, by kind and name.
type objects map[string]runtime.Object

// get is the object of this kind and name.
func get[T runtime.Object](t *testing.T, all objects, key string) T {
	t.Helper()
	object, ok := all[key].(T)
	if !ok {
		t.Fatalf("there is no %s", key)
	}
	return object
}

// kinds are what the chart may make. Their types refuse unknown fields.
var kinds = map[string]func() runtime.Object{
	"v1/ConfigMap":                           func() runtime.Object { return new(corev1.ConfigMap) },
	"v1/Secret":                              func() runtime.Object { return new(corev1.Secret) },
	"v1/Service":                             func() runtime.Object { return new(corev1.Service) },
	"apps/v1/Deployment":                     func() runtime.Object { return new(appsv1.Deployment) },
	"batch/v1/Job":                           func() runtime.Object { return new(batchv1.Job) },
	"autoscaling/v2/HorizontalPodAutoscaler": func() runtime.Object { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"networking.k8s.io/v1/Ingress":           func() runtime.Object { return new(networkingv1.Ingress) },
	"networking.k8s.io/v1/NetworkPolicy":     func() runtime.Object { return new(networkingv1.NetworkPolicy) },
	"policy/v1/PodDisruptionBudget":          func() runtime.Object { return new(policyv1.PodDisruptionBudget) },
}

// render makes and decodes everything. Custom kinds, whose types are elsewhere, are counted only.
func render(t *testing.T, values string, args ...string) (all objects, custom []string) {
	t.Helper()
	out, err := helm(t, append([]string{"template", "chat", chart, "--namespace", "chat", "--kube-version", kubernetes,
		"--values", filepath.Join(chart, "ci", values+"-values.yaml")}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	all = make(objects)
	documents := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(out)))
	buffer := make([]byte, 1<<20)
	for {
		n, err := documents.Read(buffer)
		if err == io.EOF {
			return all, custom
		}
		if err != nil {
			t.Fatal(err)
		}
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := strict.Unmarshal(buffer[:n], &head); err != nil {
			t.Fatalf("%v\n%s", err, buffer[:n])
		}
		if head.Kind == "" {
			continue // a template that made nothing
		}
		newObject, known := kinds[head.APIVersion+"/"+head.Kind]
		if !known {
			custom = append(custom, head.Kind)
			continue
		}
		object := newObject()
		if err := strict.UnmarshalStrict(buffer[:n], object); err != nil {
			t.Errorf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
		all[head.Kind+" "+head.Metadata.Name] = object
	}
}

func TestChartLints(t *testing.T) {
	t.Parallel()
	values, err := filepath.Glob(filepath.Join(chart, "ci", "*-values.yaml"))
	if err != nil || len(values) < 3 {
		t.Fatalf("%v %v", values, err)
	}
	for _, file := range values {
		if _, err := helm(t, "lint", "--strict", "--kube-version", kubernetes, "--values", file, chart); err != nil {
			t.Error(err)
		}
	}
}

// TestChartFitsTheSchemas asks kubectl-validate, for the oldest Kubernetes that the chart allows. It has no schema of
// the Prometheus operator's kinds.
func TestChartFitsTheSchemas(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"minimal", "full", "migrate-job"} {
		out, err := helm(t, "template", "chat", chart, "--namespace", "chat", "--kube-version", "1.30",
			"--values", filepath.Join(chart, "ci", values+"-values.yaml"), "--set", "serviceMonitor.enabled=false")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), values+".yaml")
		if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tool(t, "KUBECTL_VALIDATE", "--version", "1.30", file); err != nil {
			t.Error(err)
		}
	}
}

func TestChartPodsEndOnTheirOwnBeforeTheyAreKilled(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"minimal", "full"} {
		all, _ := render(t, values)
		pod := get[*appsv1.Deployment](t, all, "Deployment chat-xabar").Spec.Template.Spec
		config := get[*corev1.ConfigMap](t, all, "ConfigMap chat-xabar").Data
		drain, err := time.ParseDuration(config["XABAR_DRAIN_TIMEOUT"])
		if err != nil {
			t.Fatal(err)
		}
		before := time.Duration(pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds) * time.Second
		if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= before+drain {
			t.Errorf("%s: %v are not enough for preStop %v and the drain of %v", values, grace, before, drain)
		}
		if path := pod.Containers[0].ReadinessProbe.HTTPGet.Path; path != "/readyz" {
			t.Errorf("readiness asks %s", path)
		}
		if path := pod.Containers[0].LivenessProbe.HTTPGet.Path; path != "/healthz" {
			t.Errorf("liveness asks %s: a failed database would restart all pods", path)
		}
	}
}

// TestChartPodsGetAConfigurationThatWorks puts a pod's environment together as the kubelet does.
func TestChartPodsGetAConfigurationThatWorks(t *testing.T) {
	t.Parallel()
	all, _ := render(t, "full")
	container := get[*appsv1.Deployment](t, all, "Deployment chat-xabar").Spec.Template.Spec.Containers[0]
	env := imageEnvironment(t)
	for _, source := range container.EnvFrom {
		switch {
		case source.ConfigMapRef != nil:
			maps.Copy(env, get[*corev1.ConfigMap](t, all, "ConfigMap "+source.ConfigMapRef.Name).Data)
		case source.SecretRef != nil:
			maps.Copy(env, get[*corev1.Secret](t, all, "Secret "+source.SecretRef.Name).StringData)
		}
	}
	for _, name := range []string{"XABAR_REDIS_URL", "XABAR_TRUSTED_PROXIES", "XABAR_DATA_DIR"} {
		if env[name] == "" {
			t.Errorf("a pod has no %s", name)
		}
	}
	checkConfig(t, env)
}

func TestChartSelectsItsPods(t *testing.T) {
	t.Parallel()
	all, custom := render(t, "full")
	deployment := get[*appsv1.Deployment](t, all, "Deployment chat-xabar")
	pods := labels.Set(deployment.Spec.Template.Labels)
	for name, selector := range map[string]map[string]string{
		"Deployment":            deployment.Spec.Selector.MatchLabels,
		"PodDisruptionBudget":   get[*policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget chat-xabar").Spec.Selector.MatchLabels,
		"NetworkPolicy":         get[*networkingv1.NetworkPolicy](t, all, "NetworkPolicy chat-xabar").Spec.PodSelector.MatchLabels,
		"Service":               get[*corev1.Service](t, all, "Service chat-xabar").Spec.Selector,
		"Service of the admin ": get[*corev1.Service](t, all, "Service chat-xabar-admin").Spec.Selector,
	} {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(pods) {
			t.Errorf("%s selects %v, pods have %v", name, selector, pods)
		}
	}
	scaled := get[*autoscalingv2.HorizontalPodAutoscaler](t, all, "HorizontalPodAutoscaler chat-xabar").Spec
	if scaled.ScaleTargetRef.Name != deployment.Name || len(scaled.Metrics) != 2 || scaled.Metrics[0].Pods.Metric.Name != "xabar_connections" {
		t.Errorf("autoscaling %+v", scaled)
	}
	if deployment.Spec.Replicas != nil {
		t.Error("the Deployment and its autoscaler both set the number of pods")
	}
	backend := get[*networkingv1.Ingress](t, all, "Ingress chat-xabar").Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if backend.Name != "chat-xabar" || backend.Port.Name != get[*corev1.Service](t, all, "Service chat-xabar").Spec.Ports[0].Name {
		t.Errorf("the Ingress goes to %+v", backend)
	}
	if len(custom) != 1 || custom[0] != "ServiceMonitor" {
		t.Errorf("other kinds: %v", custom)
	}
}

func TestChartPodsMayDoNothingButTheirWork(t *testing.T) {
	t.Parallel()
	all, _ := render(t, "migrate-job")
	for name, pod := range map[string]corev1.PodSpec{
		"Deployment": get[*appsv1.Deployment](t, all, "Deployment chat-xabar").Spec.Template.Spec,
		"Job":        get[*batchv1.Job](t, all, "Job chat-xabar-migrate").Spec.Template.Spec,
	} {
		container := pod.Containers[0].SecurityContext
		if !*pod.SecurityContext.RunAsNonRoot || *pod.AutomountServiceAccountToken || !*container.ReadOnlyRootFilesystem ||
			*container.AllowPrivilegeEscalation || len(container.Capabilities.Drop) != 1 {
			t.Errorf("%s: %+v %+v", name, pod.SecurityContext, container)
		}
	}
}

func TestChartMigrationJobIsNoPodOfTheService(t *testing.T) {
	t.Parallel()
	all, _ := render(t, "migrate-job")
	service := get[*corev1.Service](t, all, "Service chat-xabar")
	job := get[*batchv1.Job](t, all, "Job chat-xabar-migrate")
	if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(job.Spec.Template.Labels)) {
		t.Error("clients would be sent to the Job")
	}
	if get[*corev1.ConfigMap](t, all, "ConfigMap chat-xabar").Data["XABAR_MIGRATE"] != "false" {
		t.Error("pods migrate too")
	}
}

func TestChartValuesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ set, complaint string }{
		"nothing wrong":           {"secret.existing=a", ""},
		"no secret":               {"replicas=2", "name a Secret"},
		"two secrets":             {"secret.existing=a,secret.values.XABAR_JWT_SECRET=b", "exclude each other"},
		"a misspelt value":        {"secret.existing=a,replica=2", "'replica' not allowed"},
		"what the chart sets":     {"secret.existing=a,config.XABAR_LISTEN=:80", "XABAR_LISTEN"},
		"a job without a secret":  {"secret.values.XABAR_JWT_SECRET=b,migrate.job=true", "needs secret.existing"},
		"autoscaling by nothing":  {"secret.existing=a,autoscaling.enabled=true,autoscaling.connectionsPerPod=0,autoscaling.cpuPercent=0", "needs connectionsPerPod"},
		"less than the minimum":   {"secret.existing=a,autoscaling.enabled=true,autoscaling.maxReplicas=1", "above maxReplicas"},
		"a drain that never ends": {"secret.existing=a,drainTimeoutSeconds=601", "drainTimeoutSeconds"},
	} {
		_, err := helm(t, "template", "chat", chart, "--kube-version", kubernetes, "--set", tc.set)
		if tc.complaint == "" && err != nil {
			t.Error(err)
		}
		if tc.complaint != "" && (err == nil || !strings.Contains(err.Error(), tc.complaint)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestChartJobIsTheOneOfTheAlerts: the operator names the job by a label of the Service.
func TestChartJobIsTheOneOfTheAlerts(t *testing.T) {
	t.Parallel()
	out, err := helm(t, "template", "chat", chart, "--kube-version", kubernetes,
		"--values", filepath.Join(chart, "ci", "full-values.yaml"), "--show-only", "templates/servicemonitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Spec struct {
			JobLabel string
			Selector struct{ MatchLabels map[string]string }
		}
	}
	if err := strict.Unmarshal([]byte(out), &monitor); err != nil {
		t.Fatal(err)
	}
	all, _ := render(t, "full")
	admin := get[*corev1.Service](t, all, "Service chat-xabar-admin")
	if !labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels).Matches(labels.Set(admin.Labels)) {
		t.Errorf("it watches %v, not %v", monitor.Spec.Selector.MatchLabels, admin.Labels)
	}
	job := admin.Labels[monitor.Spec.JobLabel]
	if alerts := read(t, "deploy/prometheus/alerts.yml"); job == "" || !strings.Contains(alerts, fmt.Sprintf("{job=%q}", job)) {
		t.Errorf("the alerts know no job %q", job)
	}
}
