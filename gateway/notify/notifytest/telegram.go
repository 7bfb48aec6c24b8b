package notifytest

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Telegram is a local server of the Bot API for one bot: an http.Handler. Behave is
// about sendMessage only.
type Telegram struct {
	Far
	Token string

	mu       sync.Mutex // guards what follows
	messages []TelegramMessage
	updates  []json.RawMessage
	first    int64         // the id of updates[0]
	news     chan struct{} // closed when an update comes
	polls    int           // requests for updates that wait now
	maxPolls int
	conflict bool
}

// TelegramMessage is a message that a bot has sent, as its reader sees it.
type TelegramMessage struct {
	ChatID int64
	Text   string // without markup
	Bold   []string
}

// NewTelegram makes a server.
func NewTelegram() *Telegram {
	t := &Telegram{Token: "123456:TEST-token_0", first: 1, news: make(chan struct{})}
	t.Status = map[Behaviour]int{RefuseGone: 403, RefuseFlood: 429, RefuseThis: 400, Fail: 500}
	t.Answer = func(w http.ResponseWriter, status int, b Behaviour) {
		parameters := map[string]any{}
		if b == RefuseFlood {
			parameters["retry_after"] = int(FloodPause.Seconds())
		}
		respond(w, status, map[string]any{"ok": false, "error_code": status, "description": http.StatusText(status), "parameters": parameters})
	}
	return t
}

// Messages are those that arrived.
func (t *Telegram) Messages() []TelegramMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.messages)
}

// MaxPolls is how many requests for updates have waited at the same time at most.
func (t *Telegram) MaxPolls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.maxPolls
}

// Polls is how many requests for updates wait now.
func (t *Telegram) Polls() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.polls
}

// Pending is how many updates are not confirmed.
func (t *Telegram) Pending() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.updates)
}

// SetConflict has getUpdates answer that the bot has a webhook.
func (t *Telegram) SetConflict(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conflict = on
}

// Write has somebody write to the bot. kind is the chat's: private, group, …
func (t *Telegram) Write(chatID int64, kind, language, text string) {
	t.update(map[string]any{"message": map[string]any{
		"message_id": 1, "date": time.Now().Unix(), "text": text,
		"from": map[string]any{"id": chatID, "is_bot": false, "first_name": "B", "language_code": language},
		"chat": map[string]any{"id": chatID, "type": kind},
	}})
}

// Other is an update that is no message.
func (t *Telegram) Other() { t.update(map[string]any{"my_chat_member": map[string]any{}}) }

func (t *Telegram) update(u map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u["update_id"] = t.first + int64(len(t.updates))
	raw, err := json.Marshal(u)
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	t.updates = append(t.updates, raw)
	close(t.news)
	t.news = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (t *Telegram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+t.Token+"/")
	if !ok || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		respond(w, 401, map[string]any{"ok": false, "error_code": 401, "description": "Unauthorized"})
		return
	}
	switch method {
	case "getMe":
		result(w, map[string]any{"id": 123456, "is_bot": true, "first_name": "Xabar", "username": "xabar_test_bot"})
	case "getUpdates":
		t.getUpdates(w, r)
	case "sendMessage":
		if t.Attempt(w, r) {
			t.sendMessage(w, r)
		}
	default:
		respond(w, 404, map[string]any{"ok": false, "error_code": 404, "description": "Not Found"})
	}
}

func (t *Telegram) sendMessage(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ChatID    int64  `json:"chat_id"`
		Text      string `json:"text"`
		ParseMode string `json:"parse_mode"`
		Preview   struct {
			Disabled bool `json:"is_disabled"`
		} `json:"link_preview_options"`
	}
	err := json.NewDecoder(r.Body).Decode(&m)
	got := TelegramMessage{ChatID: m.ChatID, Text: m.Text}
	if err == nil && m.ParseMode == "HTML" {
		got.Text, got.Bold, err = readHTML(m.Text)
	}
	if err != nil || m.ChatID == 0 || got.Text == "" || len([]rune(got.Text)) > 4096 || !m.Preview.Disabled {
		respond(w, 400, map[string]any{"ok": false, "error_code": 400, "description": fmt.Sprintf("Bad Request: %v", err)})
		return
	}
	t.mu.Lock()
	t.messages = append(t.messages, got)
	t.mu.Unlock()
	t.Arrived(got.Text)
	result(w, map[string]any{"message_id": 1})
}

// readHTML takes what the Bot API takes, of what is used here: <b> and the escapes of
// &, <, > and ".
func readHTML(s string) (text string, bold []string, err error) {
	var b strings.Builder
	for s != "" {
		before, rest, found := strings.Cut(s, "<b>")
		inside, after, closed := strings.Cut(rest, "</b>")
		if found && !closed {
			return "", nil, fmt.Errorf("a tag is not closed")
		}
		if strings.ContainsAny(before+inside, "<>") {
			return "", nil, fmt.Errorf("can't parse entities")
		}
		b.WriteString(html.UnescapeString(before))
		if found {
			bold = append(bold, html.UnescapeString(inside))
			b.WriteString(html.UnescapeString(inside))
		}
		s = after
	}
	return b.String(), bold, nil
}

func (t *Telegram) getUpdates(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Offset  int64 `json:"offset"`
		Limit   int   `json:"limit"`
		Timeout int   `json:"timeout"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		respond(w, 400, map[string]any{"ok": false, "error_code": 400, "description": "Bad Request"})
		return
	}
	deadline := time.NewTimer(time.Duration(q.Timeout) * time.Second)
	defer deadline.Stop()
	if q.Timeout > 0 { // else it does not wait
		t.enter(1)
		defer t.enter(-1)
	}
	for {
		found, news, conflict := t.waiting(q.Offset, q.Limit)
		if conflict {
			respond(w, 409, map[string]any{"ok": false, "error_code": 409, "description": "Conflict: webhook is active"})
			return
		}
		if len(found) > 0 {
			result(w, found)
			return
		}
		select {
		case <-news:
		case <-r.Context().Done():
			return
		case <-deadline.C:
			result(w, []json.RawMessage{})
			return
		}
	}
}

func (t *Telegram) enter(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.polls += n
	t.maxPolls = max(t.maxPolls, t.polls)
}

// waiting confirms what is before offset, and returns what is there from it on.
func (t *Telegram) waiting(offset int64, limit int) ([]json.RawMessage, <-chan struct{}, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := min(max(offset-t.first, 0), int64(len(t.updates)))
	t.updates, t.first = t.updates[done:], t.first+done
	return slices.Clone(t.updates[:min(limit, len(t.updates))]), t.news, t.conflict
}

func result(w http.ResponseWriter, v any) { respond(w, 200, map[string]any{"ok": true, "result": v}) }

func respond(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of texts and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone notices nothing
}
