package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xabar/internal/testkit"
)

// nodeFolder is a folder for programs that import the official client.
func nodeFolder(t *testing.T) string {
	t.Helper()
	modules := filepath.Join(testkit.JSDir(), "node_modules")
	if _, err := os.Stat(modules); err != nil {
		t.Fatalf("the JavaScript clients are not installed: run `make js-clients`")
	}
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// node runs a program and returns what it prints.
func node(t *testing.T, dir, program string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(testkit.Context(t), "node", program)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheReadmesTwoUsersWriteToEachOther(t *testing.T) {
	t.Parallel()
	code := readmeCode(t, "chat.mjs")
	if n := strings.Count(code, "\n"); n > 25 {
		t.Errorf("the snippet has %d lines, more than 25", n)
	}
	dir := nodeFolder(t)
	writeFile(t, filepath.Join(dir, "chat.mjs"), code)
	gateway := testkit.StartGateway(t, testkit.GatewayOptions{})
	// Twice: the second time the users and their conversation are there already.
	for _, seqs := range []string{"1", "3"} {
		out := node(t, dir, "chat.mjs", "XABAR_URL="+gateway.URL)
		for _, line := range []string{"bob hears: Salam, Bob!", "ada hears: Salam, Ada!", "stored as seq " + seqs} {
			if strings.Count(out, line+"\n") != 1 {
				t.Errorf("not once %q in:\n%s", line, out)
			}
		}
	}
}

// TestTheReadmesStateEndsAtReadInAnyOrder runs every interleaving of what a sender
// hears of one message, each event up to twice, with a message before and one behind.
func TestTheReadmesStateEndsAtReadInAnyOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "forward.mjs"), readmeCode(t, "forward.mjs"))
	writeFile(t, filepath.Join(dir, "check.mjs"), `
import { advance, status } from "./forward.mjs";

const rank = ["sending", "sent", "delivered", "read"];
const heard = [["answer", 5], ["message:delivered", 5], ["message:delivered", 4], ["message:read", 5], ["message:read", 3], ["message:delivered", 5]];
function* orders(rest, done = []) {
  if (rest.length === 0) yield done;
  for (let i = 0; i < rest.length; i++) yield* orders(rest.toSpliced(i, 1), [...done, rest[i]]);
}
let count = 0;
for (const order of orders(heard)) {
  const message = { clientMsgId: "x" };
  let positions = Object.freeze({ delivered: 2, read: 1 });
  let last = 0;
  for (const [event, seq] of order) {
    if (event === "answer") message.seq = seq;
    else positions = Object.freeze(advance(positions, event, seq));
    const now = rank.indexOf(status(message, positions));
    if (now < last) throw new Error("it went back: " + JSON.stringify(order));
    last = now;
  }
  if (rank[last] !== "read") throw new Error("it ended at " + rank[last] + ": " + JSON.stringify(order));
  if (status({ seq: 6 }, positions) !== "sent") throw new Error("a later message looks received");
  count++;
}
console.log(count + " orders");
`)
	if out := node(t, dir, "check.mjs"); out != "720 orders\n" {
		t.Fatalf("it printed %q", out)
	}
}
