package rooms_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xabar/internal/testkit/redistest"
)

// TestAPassword: with the right one nodes talk, with a wrong one they say that they
// are degraded.
func TestAPassword(t *testing.T) {
	t.Parallel()
	// The user may do what docs/guides/several-nodes.md says.
	server := redistest.Start(t, "--requirepass", "secret of all", "--user", "xabar", "on", ">secret of one", "~xabar:*", "&*",
		"+@all", "-@dangerous", "+info", "+cluster")
	for name, credentials := range map[string]string{"of all": ":secret%20of%20all@", "of a user": "xabar:secret%20of%20one@"} {
		t.Run(name, func(t *testing.T) {
			url := "redis://" + credentials + server.Addr
			opts := isolated()
			opts.Prefix = "xabar:" + opts.Prefix // what the user may touch
			startPair(t, url, url, opts)
		})
	}
	for name, refused := range map[string]struct{ credentials, because string }{
		"none": {"", "NOAUTH"}, "a wrong one": {":wrong@", "WRONGPASS"}, "of nobody": {"nobody:secret@", "WRONGPASS"},
	} {
		t.Run(name, func(t *testing.T) {
			staysDeaf(t, "redis://"+refused.credentials+server.Addr, refused.because)
		})
	}
}

// staysDeaf opens a node that never gets through, and says in its log why.
func staysDeaf(t *testing.T, url, because string) {
	t.Helper()
	var log safeLog
	opts := isolated()
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	n := startNode(t, url, opts)
	eventually(t, "it was refused twice", func() bool { return log.count("pub/sub connection to Redis is down", because) >= 2 })
	eventually(t, "it cannot publish either", func() bool { return log.count("publishing to Redis fails", because) > 0 })
	deaf(t, n)
	if log.count("hearing all channels") > 0 {
		t.Error("it said that it hears")
	}
}

// safeLog is a log that several goroutines write.
type safeLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count is how many lines have all parts.
func (l *safeLog) count(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

// TestTLS: the way to Redis is encrypted in both connections, and a server that cannot show
// who it is is not spoken to.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, key := selfSigned(t, dir)
	port := freePort(t)
	redistest.Start(t, "--requirepass", "secret", "--tls-port", strconv.Itoa(port), "--tls-cert-file", certificate,
		"--tls-key-file", key, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no")
	url := "rediss://:secret@" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	trusting := url + "?skip_verify=true"
	startPair(t, trusting, trusting, isolated())
	staysDeaf(t, url, "certificate")
}

// selfSigned makes a certificate that nobody vouches for.
func selfSigned(t *testing.T, dir string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("redis.crt", "CERTIFICATE", der), write("redis.key", "PRIVATE KEY", encoded)
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().(*net.TCPAddr).Port
}
