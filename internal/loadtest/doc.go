// Package loadtest loads a chat server that speaks Socket.IO, measures it, and checks
// while it measures: that nothing is lost, doubled or out of order, and that receipts
// arrive.
//
// A Run connects users (actor), gives them conversations, and drives them with one or
// more drivers (direct, group, typing, history, reconnect), each in an open loop at a
// rate or in a closed loop with a window. In the open loop, latency counts from the
// moment at which a message was due, so that a server that stalls cannot hide it.
//
// What a server's events and payloads are called stands in a Description; the one of
// Xabar is built in. Each message's text says who sent it as the how-manieth and when
// it was due (marker), which is all that the checks need:
//
//   - stream: the messages of one sender in one conversation. It knows which are
//     answered, received by everybody, delivered and read.
//   - inbox: what one user has received of a conversation: seq rises, no sender's
//     message is out of order or twice.
package loadtest
