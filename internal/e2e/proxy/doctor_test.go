package proxy

import (
	"encoding/json"
	"os/exec"
	"testing"

	"xabar/internal/doctor"
	"xabar/internal/testkit"
)

// What `xabar doctor` finds wrong with a proxy, it must not find with the shipped ones.
func TestDoctorIsContentWithTheShippedProxies(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	path, err := testkit.Binary()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range balancers {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(testkit.Context(t), path, "doctor", "--json", "--url", b.start(t, c.nodes), "--data-dir", t.TempDir(),
				"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--jwt-secret", jwtSecret, "--server-key", serverKey, "--connections", "100")
			cmd.Env = []string{"PATH=/usr/bin:/bin"}
			out, err := cmd.Output()
			var report struct{ Findings []doctor.Finding }
			if json.Unmarshal(out, &report) != nil {
				t.Fatalf("%v: %s", err, out)
			}
			seen := 0
			for _, f := range report.Findings {
				if f.Section != "public URL" {
					continue
				}
				seen++
				if f.Level != doctor.OK {
					t.Errorf("%s is a %s: %s -> %s", f.Name, f.Level, f.Found, f.Do)
				}
			}
			if err != nil || seen < 9 {
				t.Errorf("%v, %d findings:\n%s", err, seen, out)
			}
		})
	}
}
