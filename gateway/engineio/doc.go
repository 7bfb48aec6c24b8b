// Package engineio is an Engine.IO server: the transport layer of Socket.IO.
//
// It speaks Engine.IO protocol 4 (Socket.IO 3 and 4 clients) and, behind
// Options.AllowEIO3, protocol 3 (Socket.IO 2 clients), over HTTP long-polling,
// WebSocket, and the upgrade from the first to the second. Where the protocol
// documents are silent it does what Node's engine.io does.
//
// # Use
//
//	srv := engineio.NewServer(engineio.Options{}, func(s *engineio.Socket) engineio.Session {
//		return &mySession{socket: s}
//	})
//	hs := engineio.HTTPServer(srv) // an http.Server with sensible limits
//	hs.Addr = ":3000"
//	err := hs.ListenAndServe()
//
// The application is a [Session] per connection: its calls never overlap and
// come in the order in which the client sent. It answers with [Socket.Send], which
// never blocks on the network.
//
// # How it works
//
// One message is one [Message]: encoded once, immutable, shared by any number of
// sockets. A socket holds a bounded queue of pointers to messages. A connection has
// one goroutine, its reader, which decodes frames and calls the Session; it
// holds no read buffer while it waits. Writing has no goroutine of its own: Send
// tries a non-blocking write where it stands, [Socket.SendLater] leaves the socket on
// the list of a fixed pool of flushers, which write all that has gathered in one
// system call. Only a connection whose kernel buffer is full gets a goroutine until it
// has drained. A timing wheel (one goroutine) does the heartbeats of all connections.
//
// # Locks
//
// Socket.in serialises the calls to the Session and may be held for as long as the
// application takes; Socket.mu guards the state and the queue and is held for moments.
// The order is Socket.in, then Socket.mu, then the locks of wheel, flusher and registry;
// none of the inner ones is ever held while the application is called.
package engineio
