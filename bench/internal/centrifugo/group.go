package centrifugo

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"xabar/internal/loadtest"
)

// firstID is the id of the command that publishes message 0.
const firstID = 10

// send publishes the next message. Call it with mu, so that messages leave in the order of their numbers.
func (r *run) send() {
	n, due := r.next, time.Since(r.start)
	r.next++
	r.flying[n] = &flight{due: due, left: len(r.members)}
	data := fmt.Sprintf(`{"n":%d,"due":%d,"text":"`, n, int64(due))
	filling := r.opts.Size - len(envelope) - len(data) - len(`"}`)
	command := fmt.Sprintf(`{"id":%d,"publish":{"channel":"%s","data":%s%s"}}}`, n+firstID, channel, data, strings.Repeat("x", filling))
	if err := r.sender.write([]byte(command)); err != nil {
		r.fault("connection lost", "the sender: %v", err)
	}
}

// answer takes what the sender hears.
func (r *run) answer(line []byte) error {
	id, ok := number(line, `{"id":`)
	if !ok {
		return fmt.Errorf("no reply: %.200s", line)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := id - firstID
	f := r.flying[n]
	switch {
	case f == nil:
		r.fault("malformed", "an answer to no message: %.200s", line)
		return nil
	case bytes.Contains(line, []byte(`"error":`)):
		r.fault("refused", "message %d: %.200s", n, line)
		f.left = 0 // nobody needs to receive it
	}
	f.answered = true
	record(r.answered, time.Since(r.start)-f.due)
	r.settle(n, f)
	return nil
}

// receive takes what a member hears.
func (r *run) receive(m *member, line []byte) error {
	n, ok := number(line, `"n":`)
	due, ok2 := number(line, `"due":`)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok || !ok2 || len(line) != r.opts.Size {
		r.fault("malformed", "%d bytes instead of %d: %.200s", len(line), r.opts.Size, line)
		return nil
	}
	fresh, fault := m.accept(n)
	if fault != "" {
		r.fault(fault, "member %d heard message %d behind message %d", m.index, n, m.next-1)
	}
	if !fresh {
		return nil
	}
	record(r.received, time.Since(r.start)-time.Duration(due))
	if f := r.flying[n]; f != nil {
		f.left--
		r.settle(n, f)
	}
	return nil
}

// accept says whether a message is new, and what is wrong with it.
func (m *member) accept(n int64) (fresh bool, fault string) {
	switch {
	case n >= m.next:
		for hole := m.next; hole < n; hole++ { // if they don't come, they are missing at the end
			m.holes[hole] = true
		}
		m.next = n + 1
		return true, ""
	case m.holes[n]:
		delete(m.holes, n)
		return true, "out of order"
	}
	return false, "doubled"
}

// settle sends the next message when one is done. Call it with mu.
func (r *run) settle(n int64, f *flight) {
	if f.left > 0 || !f.answered {
		return
	}
	delete(r.flying, n)
	if !r.ending {
		r.send()
	}
}

// number is the one that follows the first occurrence of name.
func number(line []byte, name string) (n int64, ok bool) {
	_, rest, ok := bytes.Cut(line, []byte(name))
	if end := bytes.IndexAny(rest, ",}"); ok && end > 0 {
		n, err := strconv.ParseInt(string(rest[:end]), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// fault is called with mu.
func (r *run) fault(kind, format string, args ...any) {
	f := r.faults[kind]
	if f == nil {
		f = &loadtest.Fault{Kind: kind}
		r.faults[kind] = f
	}
	const kept = 5
	if f.Count++; len(f.Examples) < kept {
		f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
	}
}
