package webhook_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"xabar/gateway/notify/webhook"
	"xabar/internal/testkit"
)

// The receiver in the guide believes what is signed here, and nothing else.
func TestTheGuidesReceiverBelievesUs(t *testing.T) {
	t.Parallel()
	code := testkit.DocBlock(t, "docs/guides/webhooks.md", "webhook")
	file := filepath.Join(t.TempDir(), "believe.mjs")
	code += `
const [id, at, signature, body, key] = process.argv.slice(2);
const headers = { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature };
process.stdout.write(String(believe(headers, Buffer.from(body), key)));
`
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	body := `{"title":"Ада"}`
	for name, c := range map[string]struct {
		at        time.Time
		body, key string
		want      string
	}{
		"ours":         {time.Now(), body, secret, "true"},
		"too old":      {time.Now().Add(-webhook.ReplayWindow - time.Minute), body, secret, "false"},
		"another body": {time.Now(), `{"title":"Eve"}`, secret, "false"},
		"another key":  {time.Now(), body, "another key's text", "false"},
	} {
		header := http.Header{}
		webhook.Sign(header, []byte(c.key), "id", c.at, []byte(c.body))
		out, err := exec.CommandContext(t.Context(), "node", file, header.Get(webhook.HeaderID), header.Get(webhook.HeaderTimestamp),
			header.Get(webhook.HeaderSignature), body, secret).CombinedOutput()
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %s, %v (the tests need Node.js 20.19 or newer)", name, out, err)
		}
	}
}
