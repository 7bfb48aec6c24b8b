// Package check decides whether a chat deployment is consistent after all that was done
// to it. It does no I/O: it is given what clients have seen (Record, Order, Sends), what
// the database holds (Snapshot), who is connected and who counts as online (Presence),
// and what the nodes say of themselves (Sample), and it adds what is wrong to Faults.
package check
