package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// comment finds what is commented out: prose has one space behind the sign.
var comment = regexp.MustCompile(`(?m)^( *)#(\S|    )`)

// The variants with TLS that stand in comments work.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	certificate, key := selfSigned(t)
	for _, b := range balancers {
		if b.program == "caddy" {
			continue // it gets a certificate from outside
		}
		t.Run(b.name, func(t *testing.T) {
			secure := "127.0.0.1:" + freePort(t)
			plain := b
			plain.edit = func(text string, at places) string {
				text = strings.NewReplacer("    listen 8080;\n", "", "    bind :8080\n", "").Replace(text)
				text = comment.ReplaceAllString(text, "$1$2")
				return b.edit(strings.NewReplacer(
					"/etc/haproxy/example.org.pem", write(t, certificate+key),
					"/etc/nginx/example.org.crt", write(t, certificate), "/etc/nginx/example.org.key", write(t, key),
					"listen 443 ", "listen "+secure+" ", "bind :443 ", "bind "+secure+" ",
					"listen 80;", "listen "+at.listen+";", "bind :80\n", "bind "+at.listen+"\n",
				).Replace(text), at)
			}
			plain.ready = func(status int) bool { return status == http.StatusPermanentRedirect }
			plain.start(t, c.nodes)
			from := client(t, "127.0.0.1")
			from.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // it signs itself
			if sid := open(t, from, "https://"+secure); sid == "" {
				t.Error("no session over TLS")
			}
		})
	}
}

// selfSigned makes a certificate and its key, in PEM.
func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE", signed), encode("PRIVATE KEY", pkcs8)
}

func write(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
