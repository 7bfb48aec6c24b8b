// Package socketio is a Socket.IO server: protocol 5 for the JavaScript clients 3 and 4 (and
// everything else that speaks it), and, with AllowEIO3, the dialect of client 2. Where the
// protocol is silent it does what Node's socket.io 4.8 does, and the names are those of
// its API.
//
// A Server is an http.Handler. Clients connect to namespaces: "/", which the Server embeds, and
// others. A client's membership in a namespace is a Socket:
//
//	io := socketio.NewServer(socketio.Options{})
//	io.OnConnection(func(s *socketio.Socket) {
//		s.Join("room")
//		s.On("hello", func(ev *socketio.Event) {
//			io.To("room").Emit("hello", ev.Arg(0))
//			ev.Ack("done")
//		})
//	})
//	http.Handle("/socket.io/", io)
//
// # Goroutines and order
//
// Packets of a connection are handled one after the other on its reader: middlewares, handlers
// and callbacks of acknowledgements that block hold up that connection, and only it. A
// handler that has to wait keeps its Event (Retain) and acknowledges it later from
// elsewhere. Sending never waits for the network. Events of one sender arrive in the order of
// the calls.
//
// # Locks
//
// recovery.mu, then Socket.gate, then Server.mu or the adapter's; Socket.mu, then timers.mu. None of
// them is held while application code runs. (An AdapterFactory runs under Server.mu and must
// not call the server.)
package socketio
