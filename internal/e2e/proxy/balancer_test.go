package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xabar/internal/testkit"
)

// balancer is a shipped configuration and how to run it.
type balancer struct {
	name    string
	program string
	files   []string // in deploy/, the first one is what the program is given
	// edit puts addresses and paths of a test into a file's text: only those.
	edit func(text string, at places) string
	args func(at places) []string
	// ready is a status by which the program shows that it works; nil: 200.
	ready func(status int) bool
}

// places are the addresses and paths of a test.
type places struct {
	dir    string // of the files
	listen string // host:port of the proxy
	nodes  []*testkit.Gateway
}

func (p places) node(i int) string  { return strings.TrimPrefix(p.nodes[i].URL, "http://") }
func (p places) admin(i int) string { return strings.TrimPrefix(p.nodes[i].AdminURL, "http://") }

var balancers = []balancer{
	{
		name: "nginx", program: "nginx", files: []string{"nginx/nginx.conf", "nginx/xabar.conf"},
		edit: func(text string, at places) string {
			temp := ""
			for _, what := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
				temp += fmt.Sprintf("    %s_temp_path %s;\n", what, filepath.Join(at.dir, what))
			}
			return strings.NewReplacer(
				"http {\n", "http {\n"+temp,
				"xabar-1:3000", at.node(0), "xabar-2:3000", at.node(1),
				"listen 8080;", "listen "+at.listen+";",
				"/var/log/nginx/", at.dir+"/",
			).Replace(text)
		},
		args: func(at places) []string {
			return []string{
				"-p", at.dir, "-c", filepath.Join(at.dir, "nginx.conf"), "-e", filepath.Join(at.dir, "error.log"),
				"-g", fmt.Sprintf("daemon off; pid %s/nginx.pid; error_log stderr;", at.dir),
			}
		},
	},
	{
		name: "HAProxy", program: "haproxy", files: []string{"haproxy/haproxy.cfg"},
		edit: func(text string, at places) string {
			for i := range at.nodes {
				_, adminPort, _ := net.SplitHostPort(at.admin(i))
				text = strings.Replace(text, fmt.Sprintf("xabar-%d:3000 check port 3001", i+1), at.node(i)+" check port "+adminPort, 1)
			}
			return strings.Replace(text, "bind :8080\n", "bind "+at.listen+"\n", 1)
		},
		args: func(at places) []string { return []string{"-f", filepath.Join(at.dir, "haproxy.cfg")} },
	},
	{
		name: "Caddy", program: "caddy", files: []string{"caddy/Caddyfile"},
		edit: func(text string, at places) string {
			_, adminPort, _ := net.SplitHostPort(at.admin(0)) // the same on both nodes
			return strings.NewReplacer(
				"\n:8080 {", "\n{\n\tadmin off\n}\nhttp://"+at.listen+" {\n\tbind 127.0.0.1",
				"xabar-1:3000", at.node(0), "xabar-2:3000", at.node(1), "3001", adminPort,
			).Replace(text)
		},
		args: func(at places) []string {
			return []string{"run", "--adapter", "caddyfile", "--config", filepath.Join(at.dir, "Caddyfile")}
		},
	},
}

// start runs the program in front of the nodes until the test ends and returns its URL when it answers.
func (b balancer) start(t *testing.T, nodes []*testkit.Gateway) string {
	t.Helper()
	at := places{dir: t.TempDir(), listen: "127.0.0.1:" + freePort(t), nodes: nodes}
	for _, file := range b.files {
		text, err := os.ReadFile(filepath.Join(testkit.Root(), "deploy", file))
		if err != nil {
			t.Fatal(err)
		}
		edited := b.edit(string(text), at)
		if err := os.WriteFile(filepath.Join(at.dir, filepath.Base(file)), []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(find(t, b.program), b.args(at)...)
	cmd.Env = append(os.Environ(), "HOME="+at.dir, "XDG_DATA_HOME="+at.dir, "XDG_CONFIG_HOME="+at.dir)
	ended := run(t, cmd)
	url := "http://" + at.listen
	eventually(t, b.name+" answers for a node", func() bool {
		if ended() {
			t.Fatalf("%s has ended", b.program)
		}
		response, err := once.Get(url + "/openapi.yaml")
		if err != nil {
			return false
		}
		response.Body.Close()
		if b.ready != nil {
			return b.ready(response.StatusCode)
		}
		return response.StatusCode == http.StatusOK
	})
	return url
}

// once asks without following where an answer points to, and keeps no connection.
var once = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// find looks where services are installed too, which is not on everybody's PATH.
func find(t *testing.T, program string) string {
	t.Helper()
	for _, name := range []string{program, "/usr/sbin/" + program} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed: run `make test-deps`, or on Debian `apt-get install %s`", program, program)
	return ""
}

// run starts a process that ends with the test, gracefully, and whose output is shown when it fails. ended
// says whether it has by itself.
func run(t *testing.T, cmd *exec.Cmd) (ended func() bool) {
	t.Helper()
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // it ends by our signal, or too early, which is noticed
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		limit := time.NewTimer(testkit.Patience)
		defer limit.Stop()
		select {
		case <-done:
		case <-limit.C:
			t.Errorf("%s does not end", cmd.Path)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of its group
			<-done
		}
		if t.Failed() {
			t.Logf("%s:\n%s", cmd.Path, out.tail())
		}
	})
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// lockedBuffer is written by a process's output and read by the test.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.text.String()
	return text[max(0, len(text)-20_000):]
}

// freePort is a port that is free on all loopback addresses.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// eventually asks again and again until ok, or fails the test.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := testkit.Context(t)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("not so in time: %s", what)
		case <-ticker.C:
		}
	}
}
