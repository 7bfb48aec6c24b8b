// Package events speaks the chat's events on Socket.IO: it turns what clients
// emit into calls of chat.Service (table.go has one line per event) and what was
// stored into what their sockets hear.
//
// Hub is this node's side of delivery, the chat.Broadcaster for its sockets.
// Every conversation belongs to one of a few workers (chat.Shard), which does all
// its deliveries one after the other: messages in rising seq, positions behind the
// messages they speak of, catch-ups in between. So the order of a conversation needs
// no lock, and nothing that is slow runs there: a send to a socket never
// waits, and what must ask the database goes through a pool and comes back as a
// job.
//
// A message is encoded once. Its acknowledgements come back to one record per
// message (delivery), not per recipient; each claims for its user the seqs between
// the message emitted before and this one. A claim beyond a gap waits in gapTable
// until the user's position has reached it.
//
// Lock order: userTable shard, then client.mu. Neither is held over a call out of
// the package.
package events
