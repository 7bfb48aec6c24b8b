// Package testkit starts what tests of the whole need: the real binary (Gateway)
// and official Socket.IO clients in Node (JS). Databases and Redis are in
// packages below.
//
// Everything that it starts ends with the test that started it, and with the
// test process if that dies first. Nothing here sleeps to wait: it waits for
// output, events and exits, under the deadline of the context it is given.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { testkit.Main(m) }
package testkit
