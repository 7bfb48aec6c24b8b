package check

import "xabar/chat"

// Online is who is online: on how many nodes each user has a connection.
type Online map[chat.ID]int

// ComparePresence says whether the entries are those of the users who are connected, and
// no others.
func ComparePresence(entries, truth Online, faults *Faults) {
	for user, nodes := range truth {
		if entries[user] != nodes {
			faults.Add(Presence, "%s is connected to %d nodes and has %d entries", user, nodes, entries[user])
		}
	}
	for user, nodes := range entries {
		if truth[user] == 0 {
			faults.Add(Presence, "%s is connected to no node and has %d entries: a ghost", user, nodes)
		}
	}
}

// CompareAnswer says whether what one user is told of others is so.
func CompareAnswer(asker chat.ID, answer []chat.PresenceState, truth Online, faults *Faults) {
	for _, state := range answer {
		if state.Online != (truth[state.UserID] > 0) {
			faults.Add(Presence, "%s is told that %s is online: %v; it has connections to %d nodes", asker, state.UserID, state.Online, truth[state.UserID])
		}
	}
}
