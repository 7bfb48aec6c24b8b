package events

import (
	"errors"

	"xabar/chat"
)

var errOtherHistory = errors.New("the database was restored under this node: it must be started anew")

// sameHistory refuses a connection when the database holds another history than the one that
// this node began with. Streams, gaps and caches are of that one: they would keep messages
// back whose seqs they have seen.
func (h *Hub) sameHistory(epoch chat.ID) error {
	if h.epoch.CompareAndSwap(nil, &epoch) || *h.epoch.Load() == epoch {
		return nil
	}
	if h.cfg.Restored != nil {
		h.cfg.Restored()
	}
	return errOtherHistory
}
