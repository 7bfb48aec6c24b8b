package socketio

import (
	"io/fs"
	"log/slog"
	"time"

	"xabar/gateway/engineio"
)

// Defaults of Options.
const (
	DefaultConnectTimeout     = 45 * time.Second
	DefaultMaxNamespaces      = 32
	DefaultMaxRooms           = 10_000
	DefaultMaxPendingAcks     = 1024
	DefaultMaxAttachments     = 10
	DefaultMaxAttachmentBytes = 1_000_000
	DefaultMaxDepth           = 256
	DefaultMaxChildNamespaces = 10_000
)

// maxNamespaceName bounds the name in a packet, in bytes.
const maxNamespaceName = 1024

// Options configure a Server. The zero value is a working server with in-process rooms.
type Options struct {
	// Options of the transport below: path (default here "/socket.io"), heartbeat, payload
	// limit, budgets, origins.
	engineio.Options

	// ConnectTimeout closes a connection that has joined no namespace by then. Default 45 s.
	ConnectTimeout time.Duration
	// Parser of all packets. Default TextParser.
	Parser Parser
	// Adapter makes the adapter of each namespace. Default NewMemoryAdapter.
	Adapter AdapterFactory
	// ClientFiles holds the builds of socket.io-client (its dist folder: socket.io.js,
	// socket.io.min.js, socket.io.esm.min.js, socket.io.msgpack.min.js and their .map), served
	// under Path. Nil serves nothing.
	ClientFiles fs.FS
	// KeepEmptyNamespaces keeps the children of parent namespaces when their last socket
	// has left. By default they are closed.
	KeepEmptyNamespaces bool

	// Recovery, if not nil, switches connection state recovery on.
	Recovery *Recovery

	// MaxNamespaces bounds the namespaces of one connection; beyond it the client gets a
	// connect_error. Default 32.
	MaxNamespaces int
	// MaxRooms bounds the rooms of one socket; beyond it Join returns ErrTooManyRooms. Default 10,000.
	MaxRooms int
	// MaxPendingAcks bounds the acknowledgements one socket owes; beyond it emits that ask for
	// one return ErrTooManyAcks. Default 1,024.
	MaxPendingAcks int
	// MaxAttachments bounds the binaries of one packet, in both directions. Default 10.
	MaxAttachments int
	// MaxAttachmentBytes bounds the binaries of one packet from a client, all together in bytes:
	// what a connection that never sends the last one makes the server hold. Default: MaxPayload,
	// or its default of 1,000,000.
	MaxAttachmentBytes int
	// MaxDepth bounds the nesting of JSON from clients. Default 256.
	MaxDepth int
	// MaxChildNamespaces bounds the children of one ParentNamespace; beyond it the client gets
	// a connect_error. Default 10,000.
	MaxChildNamespaces int

	// PanicAck are the arguments of the acknowledgement (and PanicConnectError the refusal) that
	// the client gets when a handler or middleware panicked, before its connection is closed.
	// Default: {"error":{"code":"internal","message":"internal error"}}.
	PanicAck          []any
	PanicConnectError *ConnectError

	// Hooks are called for metrics. Logger (of the embedded options) receives panics at level
	// Error, refused packets and bounds that were hit at level Debug.
	Hooks Hooks
}

// Hooks are called at what a metric would count; each may be nil. They run on hot paths and
// must neither block nor panic.
type Hooks struct {
	Connect        func(namespace string)              // a socket has joined a namespace
	ConnectRefused func(namespace string, err error)   // a middleware or a bound refused it
	Disconnect     func(namespace, reason string)      // a socket has left
	EventIn        func(namespace, event string)       // an event came in
	PendingAcks    func(delta int)                     // acknowledgements that clients owe
	AckTimeout     func(namespace string)              // one was not given in time
	Malformed      func(err error)                     // a connection was closed for a bad packet
	Bound          func(bound string)                  // the Options field of a bound that was hit
	Panic          func(where string, err *PanicError) // "handler", "middleware", "connection", "ack", "disconnect"
	Namespace      func(name string, created bool)     // a child namespace was created or closed
}

func orDefault[T int | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

func (o *Options) setDefaults() {
	orDefault(&o.ConnectTimeout, DefaultConnectTimeout)
	orDefault(&o.MaxNamespaces, DefaultMaxNamespaces)
	orDefault(&o.MaxRooms, DefaultMaxRooms)
	orDefault(&o.MaxPendingAcks, DefaultMaxPendingAcks)
	orDefault(&o.MaxAttachments, DefaultMaxAttachments)
	orDefault(&o.MaxAttachmentBytes, o.MaxPayload)
	orDefault(&o.MaxAttachmentBytes, DefaultMaxAttachmentBytes)
	orDefault(&o.MaxDepth, DefaultMaxDepth)
	orDefault(&o.MaxChildNamespaces, DefaultMaxChildNamespaces)
	if o.Parser == nil {
		o.Parser = TextParser{}
	}
	if o.Adapter == nil {
		o.Adapter = NewMemoryAdapter
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Path == "" {
		o.Path = "/socket.io"
	}
	internal := map[string]string{"code": "internal", "message": "internal error"}
	if o.PanicAck == nil {
		o.PanicAck = []any{map[string]any{"error": internal}}
	}
	if o.PanicConnectError == nil {
		o.PanicConnectError = &ConnectError{Message: "internal error", Data: internal}
	}
}
