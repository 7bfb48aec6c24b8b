package access

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"xabar/chat"
	"xabar/internal/testkit"
)

// An export is everything of the user's own; after an erasure nothing of it is left,
// and what others wrote is.
func TestExportAndErase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--limit-sends", "off", "--limit-events", "off")
	ctx := testkit.Context(t)
	ann, bob := w.person("ann"), w.person("bob")
	direct := w.open(ann, object{"user_id": bob.id})
	group := w.group(ann, bob)
	for range 60 { // more than a page
		w.send(ann, direct, "ann's")
	}
	w.send(bob, direct, "bob's")
	w.send(ann, group, "ann's")
	w.want(201, nil, ann.token, "POST", "/contacts", object{"user_id": bob.id})
	w.want(200, nil, ann.token, "PATCH", "/me", object{"notify": false})

	export := w.want(200, nil, serverKey, "GET", "/admin/users/ann/export", nil)
	counts := map[string]int{}
	for line := range bytes.Lines(export.body) {
		var entry struct{ Type string }
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		counts[entry.Type]++
	}
	if counts["message"] != 61 || counts["conversation"] != 2 || counts["contact"] != 1 || counts["settings"] != 1 || counts["end"] != 1 {
		t.Errorf("the export has %v", counts)
	}
	if bytes.Contains(export.body, []byte("bob's")) {
		t.Error("the export has another's words")
	}

	page, bobPage := w.page(ann), w.page(bob)
	w.want(204, nil, serverKey, "DELETE", "/admin/users/"+ann.id, nil)
	if _, err := page.WaitFor(ctx, "disconnect", nil); err != nil {
		t.Error(err)
	}
	if r := w.call(ann.token, "GET", "/me", nil); r.status != 401 {
		t.Errorf("the token of the erased: %d %s", r.status, r.body)
	}
	if r := w.call(serverKey, "GET", "/admin/users/ann", nil); r.status != 404 {
		t.Errorf("the external id of the erased: %d %s", r.status, r.body)
	}
	var view struct {
		Title   string
		LastSeq int64 `json:"last_seq"`
	}
	w.want(200, &view, bob.token, "GET", "/conversations/"+direct, nil)
	if view.Title != chat.ErasedName || view.LastSeq != 61 {
		t.Errorf("the other side sees %+v", view)
	}
	var history struct{ Messages []struct{ Text string } }
	w.want(200, &history, bob.token, "GET", "/conversations/"+direct+"/messages", nil)
	if len(history.Messages) != 1 || history.Messages[0].Text != "bob's" {
		t.Errorf("history %+v", history)
	}
	if got := w.ask(bobPage, "sync", object{"positions": object{}}); bytes.Contains(got.raw, []byte("ann's")) {
		t.Errorf("sync has %s", got.raw)
	}
	w.send(bob, group, "bob owns it now")
	// Whoever comes by the same name later is somebody else.
	again := w.comeBack("ann")
	if again.id == ann.id {
		t.Error("the erased user came back")
	}
	if r := w.call(again.token, "GET", "/conversations/"+direct, nil); r.status != 404 {
		t.Errorf("and has the old conversations: %d", r.status)
	}
}

// comeBack is person for a user whose tokens were revoked a moment ago: a token says
// in whole seconds when it was made.
func (w *world) comeBack(sub string) person {
	w.t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(testkit.Patience); ; {
		token := mint(w.t, sub, time.Hour)
		if r := w.call(token, "GET", "/me", nil); r.status == 200 {
			var me struct{ User struct{ ID string } }
			decode(w.t, r.body, &me)
			return person{me.User.ID, token}
		}
		select {
		case <-ticker.C:
		case <-deadline:
			w.t.Fatal("a new token is refused for good")
		}
	}
}
