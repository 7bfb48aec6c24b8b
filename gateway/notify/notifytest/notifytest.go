// Package notifytest has the suite that every notification channel passes (Exercise),
// and a store of targets and codes for tests of channels (Store).
//
// A channel's test brings a Service: a local server that speaks the protocol of the
// channel's far end, records what arrives, and can be told to answer in each of the
// ways of Behaviour.
package notifytest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"xabar/chat"
)

// Behaviour is what a Service does with the next attempts.
type Behaviour string

// The behaviours of far ends.
const (
	Accept      Behaviour = "accept"
	RefuseGone  Behaviour = "gone"    // this target will never work again
	RefuseFlood Behaviour = "flood"   // too much, with a pause of FloodPause
	RefuseThis  Behaviour = "refuse"  // the request can't be accepted, whenever it comes
	Fail        Behaviour = "fail"    // an error of the far end's own
	Hang        Behaviour = "hang"    // no answer
	HangUp      Behaviour = "hang up" // the connection ends without an answer
)

// FloodPause is what RefuseFlood asks for.
const FloodPause = 3 * time.Second

// Service is a channel's far end, and a Notifier that calls it.
type Service struct {
	Notifier chat.Notifier
	// Target of a user that the service knows.
	Target json.RawMessage
	// Behave sets what comes of attempts from now on.
	Behave func(Behaviour)
	// Received are the texts that arrived, decoded to what a person sees, oldest first.
	Received func() []string
	// Attempts counts the requests that arrived, whatever became of them.
	Attempts func() int
	// NeverGone: the channel has one target for all, which is never removed.
	NeverGone bool
	// Timeout bounds an attempt: the Notifier was made with it. Keep it short.
	Timeout time.Duration
}

// Exercise runs the contract of chat.Notifier. start is called for each case.
func Exercise(t *testing.T, channel string, start func(*testing.T) Service) {
	for name, run := range map[string]func(*testing.T, Service){
		"names its channel": func(t *testing.T, s Service) {
			if got := s.Notifier.Channel(); got != channel {
				t.Errorf("it is called %q", got)
			}
		},
		"sends what people read":                sendsText,
		"sends no text where none is wanted":    hidesText,
		"sends several conversations":           sendsSeveral,
		"shows markup and overrides as text":    showsMarkup,
		"sends the largest notification":        sendsLargest,
		"tells what became of each answer":      tellsOutcomes,
		"ends with the context and its timeout": ends,
		"serves others while one hangs":         servesOthers,
		"refuses a target that is none":         refusesTarget,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, start(t))
		})
	}
}

// Notification is one of a message from Ada.
func Notification(preview string) chat.Notification {
	return chat.Notification{
		ID: chat.NewID().String(), User: chat.User{ID: chat.NewID(), Name: "Bob"}, Language: "en", Badge: 7, Tag: "c1",
		Conversations: []chat.NotifiedConversation{{
			ConversationID: chat.NewID(), Kind: chat.Direct, Title: "Ada", SenderName: "Ada", Count: 1, Preview: preview, LastSeq: 3,
		}},
	}
}

func send(t *testing.T, s Service, n chat.Notification) string {
	t.Helper()
	outcome, err := s.Notifier.Notify(t.Context(), n, s.Target)
	if err != nil || outcome != (chat.Outcome{Sent: true}) {
		t.Fatalf("%+v, %v", outcome, err)
	}
	all := s.Received()
	if len(all) == 0 {
		t.Fatal("nothing arrived")
	}
	return all[len(all)-1]
}

func requireContains(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in %q", part, got)
		}
	}
}

func sendsText(t *testing.T, s Service) {
	requireContains(t, send(t, s, Notification("see you at 5")), "Ada", "see you at 5")
	many := Notification("see you at 5")
	many.Conversations[0].Count, many.Language = 5, "ru"
	requireContains(t, send(t, s, many), "Ada", "5 новых сообщений")
	group := Notification("see you at 5")
	group.Conversations[0].Kind, group.Conversations[0].Title = chat.Group, "Team"
	requireContains(t, send(t, s, group), "Team", "Ada", "see you at 5")
	if got := len(s.Received()); got != 3 {
		t.Errorf("%d arrived", got)
	}
}

func hidesText(t *testing.T, s Service) {
	n := Notification("see you at 5")
	n.HideText = true
	got := send(t, s, n)
	requireContains(t, got, "Ada", "New message")
	if strings.Contains(got, "see you") {
		t.Errorf("the text is in %q", got)
	}
}

func sendsSeveral(t *testing.T, s Service) {
	n := Notification("see you")
	second := n.Conversations[0]
	second.ConversationID, second.Kind, second.Title, second.Count = chat.NewID(), chat.Group, "Team", 9
	n.Conversations = append(n.Conversations, second)
	requireContains(t, send(t, s, n), "10 new messages in 2 conversations", "Ada", "see you", "Team", "9 new messages")
}

func showsMarkup(t *testing.T, s Service) {
	const markup = `<img src=x onerror="alert(1)"> & <b>bold</b> &lt; ' \ `
	const override = "\u202egpj.exe"
	requireContains(t, send(t, s, Notification(markup)), strings.TrimSpace(markup))
	requireContains(t, send(t, s, Notification(override)), "\u2068"+override+"\u2069")
	named := Notification("hi")
	named.Conversations[0].SenderName = "<i>" + override
	requireContains(t, send(t, s, named), "\u2068<i>"+override+"\u2069")
}

// Largest is as large as a notification gets.
func Largest() chat.Notification {
	n := Notification("")
	wide := strings.Repeat("\U0001F469", chat.MaxTextLength)
	for range 50 {
		n.Conversations = append(n.Conversations, chat.NotifiedConversation{
			ConversationID: chat.NewID(), Kind: chat.Group, Count: 1, Preview: `"\"` + wide, LastSeq: 1 << 53,
			Title: `&\` + wide[:4*(chat.MaxTitleLength-2)], SenderName: `<"` + wide[:4*(chat.MaxNameLength-2)],
		})
	}
	n.Conversations = n.Conversations[1:]
	return n
}

func sendsLargest(t *testing.T, s Service) {
	requireContains(t, send(t, s, Largest()), "50 new messages in 50 conversations")
	one := Largest()
	one.Conversations = one.Conversations[:1]
	requireContains(t, send(t, s, one), "\U0001F469…")
}

func tellsOutcomes(t *testing.T, s Service) {
	for _, c := range []struct {
		far              Behaviour
		outcome          chat.Outcome
		failed, refused  bool
		skippedNeverGone bool
	}{
		{far: Accept, outcome: chat.Outcome{Sent: true}},
		{far: RefuseFlood, outcome: chat.Outcome{RetryAfter: FloodPause}},
		{far: RefuseGone, outcome: chat.Outcome{Gone: true}, skippedNeverGone: true},
		{far: RefuseThis, failed: true, refused: true},
		{far: Fail, failed: true},
		{far: HangUp, failed: true},
		{far: Hang, failed: true},
		{far: Accept, outcome: chat.Outcome{Sent: true}},
	} {
		if c.skippedNeverGone && s.NeverGone {
			continue
		}
		s.Behave(c.far)
		before := s.Attempts()
		n := Notification("secret")
		outcome, err := s.Notifier.Notify(t.Context(), n, s.Target)
		if outcome != c.outcome || (err != nil) != c.failed || errors.Is(err, chat.ErrRefused) != c.refused {
			t.Errorf("%s: %+v, %v", c.far, outcome, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the text: %v", c.far, err)
		}
		if got := s.Attempts() - before; got != 1 {
			t.Errorf("%s: %d attempts", c.far, got)
		}
	}
}

func ends(t *testing.T, s Service) {
	s.Behave(Hang)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if outcome, err := s.Notifier.Notify(ctx, Notification("hi"), s.Target); err == nil || outcome != (chat.Outcome{}) {
		t.Errorf("without time: %+v, %v", outcome, err)
	}
	start := time.Now()
	if _, err := s.Notifier.Notify(t.Context(), Notification("hi"), s.Target); err == nil {
		t.Error("no answer is no error")
	}
	if took := time.Since(start); took < s.Timeout || took > s.Timeout+10*time.Second {
		t.Errorf("no answer was waited for %s, not %s", took, s.Timeout)
	}
}

// servesOthers has many attempts hang, and watches that a call is still answered at
// once: sent, or put off, but never waiting behind the others.
func servesOthers(t *testing.T, s Service) {
	const many = 64
	s.Behave(Hang)
	before := s.Attempts()
	ctx, cancel := context.WithCancel(t.Context())
	type result struct {
		outcome chat.Outcome
		err     error
	}
	results := make(chan result, many)
	for range many {
		go func() {
			outcome, err := s.Notifier.Notify(ctx, Notification("hi"), s.Target)
			results <- result{outcome, err}
		}()
	}
	putOff, hanging := 0, 0
	for range many {
		r := <-results
		switch {
		case r.err == nil && r.outcome.RetryAfter > 0:
			putOff++
		case r.err != nil:
			hanging++
		default:
			t.Errorf("%+v", r)
		}
	}
	cancel()
	if putOff == 0 || hanging == 0 {
		t.Errorf("of %d attempts at once %d were put off, and %d hung", many, putOff, hanging)
	}
	if arrived := s.Attempts() - before; arrived > hanging {
		t.Errorf("%d arrived, %d hung", arrived, hanging)
	}
	s.Behave(Accept)
	send(t, s, Notification("hi"))
}

func refusesTarget(t *testing.T, s Service) {
	if s.NeverGone {
		send(t, s, Notification("any target is the same"))
		return
	}
	for _, target := range []string{"", "null", "{}", "[]", `"x"`, "{"} {
		outcome, err := s.Notifier.Notify(t.Context(), Notification("hi"), json.RawMessage(target))
		if !errors.Is(err, chat.ErrRefused) || outcome != (chat.Outcome{}) {
			t.Errorf("%q: %+v, %v", target, outcome, err)
		}
	}
	if s.Attempts() != 0 {
		t.Error("something was sent")
	}
}

// String names a behaviour in failures.
func (b Behaviour) String() string { return fmt.Sprintf("%q", string(b)) }
