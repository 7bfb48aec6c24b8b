package sioclient

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// separator stands between the packets of a body.
const separator = 0x1e

// pollClient is shared by all polling connections; each has at most two requests at a time.
var pollClient = &http.Client{Transport: &http.Transport{
	MaxIdleConns: 0, MaxIdleConnsPerHost: 1 << 16, IdleConnTimeout: time.Minute, DisableCompression: true,
}}

// CloseIdleConnections closes what polling connections have left open for later requests:
// the server keeps a goroutine for each.
func CloseIdleConnections() { pollClient.CloseIdleConnections() }

// polling sends by a goroutine of its own: a session may have one POST at a time, and
// who emits does not wait for it.
type polling struct {
	ctx    context.Context
	cancel context.CancelFunc
	url    string
	sid    string
	sender sync.WaitGroup

	mu      sync.Mutex // guards what follows
	waiting []byte
	sending bool
	failed  error
}

func dialPolling(_ context.Context, o Options) (*polling, error) {
	w := &polling{url: strings.TrimSuffix(o.URL, "/") + o.Path + "?EIO=4&transport=polling"}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

func (w *polling) append(out, packet []byte) []byte {
	if len(out) > 0 {
		out = append(out, separator)
	}
	return append(out, packet...)
}

func (w *polling) write(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return w.failed
	}
	w.waiting = w.append(w.waiting, b)
	if !w.sending {
		w.sending = true
		w.sender.Go(w.post)
	}
	return nil
}

// post sends what waits until nothing does.
func (w *polling) post() {
	for {
		w.mu.Lock()
		body := w.waiting
		w.waiting = nil
		w.sending = len(body) > 0 && w.failed == nil
		if !w.sending {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		if _, err := w.request(http.MethodPost, body); err != nil {
			w.mu.Lock()
			w.failed = err
			w.mu.Unlock()
			w.cancel()
		}
	}
}

func (w *polling) read(handle func([]byte) error) error {
	body, err := w.request(http.MethodGet, nil)
	if err != nil {
		return err
	}
	for packet := range bytes.SplitSeq(body, []byte{separator}) {
		if w.sid == "" {
			if w.sid, err = sessionID(packet); err != nil {
				return err
			}
		}
		if err := handle(packet); err != nil {
			return err
		}
	}
	return nil
}

// sessionID reads the open packet.
func sessionID(packet []byte) (string, error) {
	_, rest, ok := bytes.Cut(packet, []byte(`"sid":"`))
	sid, _, ended := bytes.Cut(rest, []byte{'"'})
	if !ok || !ended {
		return "", fmt.Errorf("sioclient: unexpected open packet %.60q", packet)
	}
	return string(sid), nil
}

func (w *polling) request(method string, body []byte) ([]byte, error) {
	url := w.url
	if w.sid != "" {
		url += "&sid=" + w.sid
	}
	r, err := http.NewRequestWithContext(w.ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	}
	answer, err := pollClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.100q", answer.Status, text)
	}
	return text, err
}

// close waits for the POST that it has interrupted.
func (w *polling) close() error {
	w.mu.Lock()
	if w.failed == nil {
		w.failed = errClosed // no POST starts from now on
	}
	w.mu.Unlock()
	w.cancel()
	w.sender.Wait()
	return nil
}
