package socketio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"

	"xabar/gateway/engineio"
)

// Server is a Socket.IO server: an http.Handler for Options.Path. The methods of its
// embedded Namespace are those of the main namespace, "/".
type Server struct {
	*Namespace
	opts   Options
	limits Limits
	engine *engineio.Server
	timers timers
	static *staticFiles
	wg     sync.WaitGroup

	mu         sync.Mutex // guards the rest; after Socket.gate
	namespaces map[string]*Namespace
	parents    []*ParentNamespace
	closed     bool
}

// NewServer starts a server. Shutdown ends it.
func NewServer(opts Options) *Server {
	opts.setDefaults()
	s := &Server{
		opts: opts,
		limits: Limits{
			MaxAttachments: opts.MaxAttachments, MaxAttachmentBytes: opts.MaxAttachmentBytes, MaxDepth: opts.MaxDepth,
		},
		namespaces: make(map[string]*Namespace),
	}
	s.static = newStaticFiles(opts.ClientFiles, opts.Path)
	s.Namespace = s.Of("/")
	s.engine = engineio.NewServer(opts.Options, s.accept)
	return s
}

// ServeHTTP serves Options.Path and, below it, the builds of the JavaScript client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.static.serve(w, r) {
		return
	}
	s.engine.ServeHTTP(w, r)
}

// Engine is the Engine.IO server below.
func (s *Server) Engine() *engineio.Server { return s.engine }

// Of returns the namespace with this name, made if there is none, and kept for good. A missing
// slash at the front is added.
func (s *Server) Of(name string) *Namespace {
	if name == "" || name[0] != '/' {
		name = "/" + name
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ns := s.namespaces[name]
	if ns == nil {
		ns = newNamespace(s, name, nil)
		s.namespaces[name] = ns
	}
	ns.pinned = true
	return ns
}

// OfPattern returns the parent of all namespaces whose name re matches and that Of has not
// made: each is made when the first client asks for it.
func (s *Server) OfPattern(re *regexp.Regexp) *ParentNamespace {
	return s.OfFunc(func(name string, _ json.RawMessage) (bool, error) { return re.MatchString(name), nil })
}

// OfFunc is OfPattern with a function, which also sees the auth payload. It runs on the reader
// of the connection that asks and may block. An error counts as no.
func (s *Server) OfFunc(allow func(name string, auth json.RawMessage) (bool, error)) *ParentNamespace {
	p := &ParentNamespace{server: s, allow: allow, children: make(map[string]*Namespace)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parents = append(s.parents, p)
	return p
}

// acquire finds or makes the namespace for a connecting socket, which must release it.
func (s *Server) acquire(name string, auth json.RawMessage) (*Namespace, error) {
	if ns, err := s.acquireExisting(name); ns != nil || err != nil {
		return ns, err
	}
	s.mu.Lock()
	parents := slices.Clone(s.parents)
	s.mu.Unlock()
	if auth == nil {
		auth = json.RawMessage("{}")
	}
	for _, p := range parents {
		ok, err := p.allow(name, auth)
		if err != nil {
			s.opts.Logger.Debug("namespace refused", "namespace", name, "err", err)
		}
		if ok && err == nil {
			return s.acquireChild(p, name)
		}
	}
	return nil, errInvalidNamespace
}

func (s *Server) acquireExisting(name string) (*Namespace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrServerClosed
	}
	ns := s.namespaces[name]
	if ns != nil {
		ns.refs++
	}
	return ns, nil
}

func (s *Server) acquireChild(p *ParentNamespace, name string) (*Namespace, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrServerClosed
	}
	ns := s.namespaces[name]
	created := ns == nil
	if created {
		if len(p.children) >= s.opts.MaxChildNamespaces {
			s.mu.Unlock()
			s.hookBound("MaxChildNamespaces", "")
			return nil, errTooManyNamespaces
		}
		ns = newNamespace(s, name, p)
		s.namespaces[name], p.children[name] = ns, ns
	}
	ns.refs++
	s.mu.Unlock()
	if created {
		s.hookNamespace(name, true)
	}
	return ns, nil
}

// release ends what acquire began. The last one closes an empty child.
func (s *Server) release(ns *Namespace) {
	s.mu.Lock()
	ns.refs--
	last := ns.refs == 0 && !ns.pinned && !s.opts.KeepEmptyNamespaces && !s.closed
	if last {
		delete(s.namespaces, ns.name)
		delete(ns.parent.children, ns.name)
	}
	s.mu.Unlock()
	if !last {
		return
	}
	if err := ns.adapter.Close(); err != nil {
		s.opts.Logger.Error("closing an adapter", "namespace", ns.name, "err", err)
	}
	s.hookNamespace(ns.name, false)
}

// encode appends the messages of a packet to dst. compress is false for no compression.
func (s *Server) encode(dst []*engineio.Message, p *Packet, compress *bool) ([]*engineio.Message, error) {
	msgs, err := s.opts.Parser.Encode(dst, p)
	if err == nil && compress != nil && !*compress {
		for _, m := range msgs[len(dst):] {
			m.NoCompress()
		}
	}
	return msgs, err
}

// Shutdown ends the server: no new connections, every socket is disconnected with "server
// shutting down" (clients see "transport close" and try again), what is queued goes out,
// and all goroutines have ended when it returns. When ctx ends first the rest is cut off and
// ctx's error returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.closed = true
	namespaces := make([]*Namespace, 0, len(s.namespaces))
	for _, ns := range s.namespaces {
		namespaces = append(namespaces, ns)
	}
	s.mu.Unlock()
	for _, ns := range namespaces {
		for _, socket := range ns.Sockets() {
			socket.close(ReasonShutdown, false)
		}
	}
	errs := []error{s.engine.Shutdown(ctx), s.wait(ctx)}
	for _, ns := range namespaces {
		if err := ns.adapter.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close adapter of %s: %w", ns.name, err))
		}
	}
	return errors.Join(errs...)
}

// wait ends the timers and waits for the goroutines of this layer.
func (s *Server) wait(ctx context.Context) error {
	s.timers.close()
	done := make(chan struct{})
	go func() { // ends when they do; only code of the application can keep them
		defer close(done)
		s.timers.wg.Wait()
		s.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// guard runs application code that belongs to no connection.
func (s *Server) guard(where string, f func()) {
	defer func() {
		if v := recover(); v != nil {
			s.reportPanic(where, &PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	f()
}

func (s *Server) newPanicError(where string, v any, sid string) error {
	err := &PanicError{Value: v, Stack: debug.Stack()}
	s.reportPanic(where, err, slog.String("sid", sid))
	return err
}

// reportPanic logs what was recovered and tells the hook.
func (s *Server) reportPanic(where string, err *PanicError, attrs ...any) {
	attrs = append(attrs, "where", where, "panic", fmt.Sprint(err.Value), "stack", string(err.Stack))
	s.opts.Logger.Error("panic in a socketio "+where, attrs...)
	if s.opts.Hooks.Panic != nil {
		s.opts.Hooks.Panic(where, err)
	}
}
