// Package outbound is how notification channels call servers of others: with a
// deadline, without following redirects, never reading more than a little, and never
// with so much in flight to one of them that the others wait. Where users name the
// server (Web Push), only public addresses are called (guard.go).
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"xabar/chat"
)

// Bounds of a call.
const (
	DefaultTimeout  = 10 * time.Second
	DefaultInFlight = 16
	DefaultAnswer   = 64 << 10 // bytes
	dialTimeout     = 5 * time.Second
	idleTimeout     = 90 * time.Second
)

// busyPause is how long a notification waits when its server has enough to do.
const busyPause = 2 * time.Second

// ErrBusy says that so much is in flight to this server that the call was not made.
var ErrBusy = errors.New("enough calls of this server are in flight")

// Options of a Caller. The zero value is good for servers that the operator names.
type Options struct {
	// PublicOnly refuses to connect to anything but public addresses, whatever a name
	// resolves to, and uses no proxy, which would connect for us.
	PublicOnly bool
	// Roots are certificate authorities to trust; nil: the system's.
	Roots *x509.CertPool
	// Timeout bounds a call, from dialling to the answer's end; 0: DefaultTimeout.
	Timeout time.Duration
	// InFlight bounds the calls at the same time to one server; 0: DefaultInFlight.
	InFlight int
	// MaxAnswer is how many bytes are read of an answer; 0: DefaultAnswer.
	MaxAnswer int64
}

// Caller makes calls. Close it when they have ended.
type Caller struct {
	client    *http.Client
	timeout   time.Duration
	maxAnswer int64
	gate      *gate
}

// New makes a Caller.
func New(o Options) *Caller {
	dialer := &net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   dialTimeout,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   DefaultInFlight,
		IdleConnTimeout:       idleTimeout,
		ExpectContinueTimeout: time.Second,
		// A connection whose peer has gone shows it before calls time out on it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: dialTimeout},
	}
	if o.PublicOnly {
		transport.Proxy = nil
		dialer.ControlContext = refusePrivate
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.InFlight == 0 {
		o.InFlight = DefaultInFlight
	}
	if o.MaxAnswer == 0 {
		o.MaxAnswer = DefaultAnswer
	}
	return &Caller{
		client: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout:   o.Timeout,
		maxAnswer: o.MaxAnswer,
		gate:      newGate(o.InFlight),
	}
}

// Close ends idle connections.
func (c *Caller) Close() { c.client.CloseIdleConnections() }

// Answer is what a server said.
type Answer struct {
	Status int
	// RetryAfter is how long the server wants to be left alone (RFC 9110, 10.2.3); 0:
	// it does not say.
	RetryAfter time.Duration
	Body       []byte // its beginning, up to Options.MaxAnswer
}

// Do makes a call within the Caller's timeout. Errors name neither the URL nor what
// was sent: both can be secret. ErrBusy and ErrPrivate say that there was no call.
func (c *Caller) Do(ctx context.Context, request *http.Request) (Answer, error) {
	return c.DoWithin(ctx, c.timeout, request)
}

// DoWithin is Do with another timeout, for long polling.
func (c *Caller) DoWithin(ctx context.Context, timeout time.Duration, request *http.Request) (Answer, error) {
	leave, ok := c.gate.enter(request.URL.Host)
	if !ok {
		return Answer{}, ErrBusy
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	response, err := c.client.Do(request.WithContext(ctx))
	if err != nil {
		return Answer{}, withoutURL(err)
	}
	defer func() { _ = response.Body.Close() }() // what matters has been read
	body, err := io.ReadAll(io.LimitReader(response.Body, c.maxAnswer))
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return Answer{response.StatusCode, retryAfter(response.Header.Get("Retry-After"), time.Now()), body}, nil
}

// withoutURL takes the URL out of an error of net/http.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// Failed is what a channel answers when Do has an error: nothing was sent, as far as
// we know.
func Failed(err error) (chat.Outcome, error) {
	switch {
	case errors.Is(err, ErrBusy):
		return chat.Outcome{RetryAfter: busyPause}, nil
	case errors.Is(err, ErrPrivate):
		return chat.Outcome{}, errors.Join(chat.ErrRefused, err)
	default:
		return chat.Outcome{}, err
	}
}
