package validate

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerui"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/opencontainers/go-digest"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

const dockerfile = "deploy/docker/Dockerfile"

// baseImages stands for a registry: each image that is asked for exists, and has no settings.
type baseImages struct{}

func (baseImages) ResolveImageConfig(_ context.Context, ref string, opt sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	config, err := json.Marshal(ocispecs.Image{
		Platform: *opt.ImageOpt.Platform,
		RootFS:   ocispecs.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromString(ref)}},
	})
	return ref, digest.FromBytes(config), config, err
}

// conversion is how BuildKit is asked about the Dockerfile.
func conversion(text []byte, arch string) dockerfile2llb.ConvertOpt {
	builder := ocispecs.Platform{OS: "linux", Architecture: "amd64"}
	return dockerfile2llb.ConvertOpt{
		Config: dockerui.Config{
			BuildArgs:      map[string]string{"VERSION": "v1.2.3", "COMMIT": "0123456789abcdef"},
			BuildPlatforms: []ocispecs.Platform{builder},
		},
		TargetPlatform: &ocispecs.Platform{OS: "linux", Architecture: arch},
		MetaResolver:   baseImages{},
		SourceMap:      llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", text),
	}
}

// plan is the image that BuildKit would build.
func plan(t *testing.T, arch string) *dockerfile2llb.Result {
	t.Helper()
	text := []byte(read(t, dockerfile))
	result, err := dockerfile2llb.Dockerfile2LLB(t.Context(), text, conversion(text, arch))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// imageEnvironment is what the image sets.
func imageEnvironment(t *testing.T) map[string]string {
	t.Helper()
	env := make(map[string]string)
	for _, setting := range plan(t, "amd64").Image.Config.Env {
		name, value, _ := strings.Cut(setting, "=")
		env[name] = value
	}
	return env
}

func TestBuildKitFindsNothingWrong(t *testing.T) {
	t.Parallel()
	text := []byte(read(t, dockerfile))
	opt := conversion(text, "amd64")
	opt.AllStages = true
	opt.Warn = func(rule, _, url, message string, location []parser.Range) {
		t.Errorf("%s: %s, at %v (%s)", rule, message, location, url)
	}
	if _, err := dockerfile2llb.Dockerfile2LLB(t.Context(), text, opt); err != nil {
		t.Error(err)
	}
}

func TestTheImageIsWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"amd64", "arm64"} {
		result := plan(t, arch)
		if _, err := result.State.Marshal(t.Context(), llb.Platform(ocispecs.Platform{OS: "linux", Architecture: arch})); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
		config := result.Image.Config
		if result.Image.Architecture != arch || config.User != "65532:65532" {
			t.Errorf("%s: %s, user %s", arch, result.Image.Architecture, config.User)
		}
		if !slices.Equal(config.Entrypoint, []string{"/xabar"}) || !slices.Equal(config.Cmd, []string{"serve"}) {
			t.Errorf("it runs %v %v", config.Entrypoint, config.Cmd)
		}
		if config.Healthcheck == nil || !slices.Equal(config.Healthcheck.Test, []string{"CMD", "/xabar", "health"}) {
			t.Errorf("health check %v: there is no shell to run another one", config.Healthcheck)
		}
		if _, ok := config.Volumes["/data"]; !ok || len(config.ExposedPorts) != 2 {
			t.Errorf("volumes %v, ports %v", config.Volumes, config.ExposedPorts)
		}
		if version := config.Labels["org.opencontainers.image.version"]; version != "v1.2.3" {
			t.Errorf("version %q", version)
		}
	}
}

// TestTheImageIsNoPlaceForDemoMode: the environment of the image alone must not let anybody in.
func TestTheImageIsNoPlaceForDemoMode(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), binary, "check-config")
	cmd.Env = plan(t, "amd64").Image.Config.Env
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "there is no key to check tokens with") {
		t.Errorf("%v\n%s", err, out)
	}
}

// ignored is what .dockerignore keeps from the build.
func ignored(t *testing.T) func(path string) bool {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(read(t, ".dockerignore")))
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return func(path string) bool {
		match, err := matcher.MatchesOrParentMatches(path)
		if err != nil {
			t.Fatal(err)
		}
		return match
	}
}

func TestTheBuildSeesWhatItNeeds(t *testing.T) {
	t.Parallel()
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	const format = `{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}` +
		`{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", format, "./cmd/xabar")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	needed := strings.Fields(strings.ReplaceAll(string(out), absolute+"/", ""))
	if len(needed) < 100 {
		t.Fatalf("only %d files", len(needed))
	}
	needed = append(needed, "go.mod", "go.sum", "LICENSE", "web/package.json", "web/package-lock.json", "web/vite.config.ts")
	isIgnored := ignored(t)
	for _, path := range needed {
		// The page is built there.
		if isIgnored(path) && !strings.HasPrefix(path, "web/dist/") {
			t.Errorf("%s is kept from the build", path)
		}
	}
}

func TestTheBuildSeesNoSecretsAndNoLeftovers(t *testing.T) {
	t.Parallel()
	isIgnored := ignored(t)
	for _, path := range []string{
		".git/config", "deploy/compose/.env", "web/.env.local", "xabar-data/demo.key", "xabar.db", "cmd/xabar/xabar.db-wal",
		"bin/xabar", "dist/SHA256SUMS", "web/node_modules/vite/package.json", "web/dist/index.html",
		"internal/testkit/js/node_modules/x/y.js", "id_rsa", "cmd/xabar/main_test.go",
	} {
		if !isIgnored(path) {
			t.Errorf("%s gets into the build", path)
		}
	}
}
