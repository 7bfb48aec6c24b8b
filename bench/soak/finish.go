package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xabar/bench/soak/check"
	"xabar/chat"
)

// checked is one of the questions of the report.
type checked struct {
	What string  `json:"what"`
	OK   bool    `json:"ok"`
	Took float64 `json:"took"` // seconds until it was so, or until it was given up
}

// tolerance is how much more a node may have at a late calm moment than at an early one. A node
// remembers deliveries whose acknowledgement has not come for two minutes.
var tolerance = check.Tolerance{Goroutines: 10, Heap: 0.25, HeapBytes: 6 << 20, Settle: 2 * time.Minute}

// idleTolerance is that of a node without clients, beside a fresh one: its pools have
// connections, its caches are warm.
var idleTolerance = check.Tolerance{Goroutines: 15, Heap: 0.25, HeapBytes: 8 << 20}

// question asks one thing; f adds faults if it is not so.
func (s *soak) question(ctx context.Context, what string, f func(context.Context) error) error {
	before, began := s.faults.Total(), time.Now()
	if err := f(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	c := checked{what, s.faults.Total() == before, time.Since(began).Seconds()}
	s.checks = append(s.checks, c)
	word := "yes"
	if !c.OK {
		word = "NO"
	}
	s.say("%s: %s", what, word)
	return ctx.Err()
}

// finish asks all questions: with everybody there, with half of them gone, and with all gone.
func (s *soak) finish(ctx context.Context, leave func()) error {
	s.checks = append(s.checks, checked{What: "order, doubles and answers were right while it ran", OK: s.faults.None(), Took: time.Since(s.start).Seconds()})
	s.talking.Store(false)
	all := map[*node]int{}
	for _, d := range s.devices {
		all[s.cluster.nodes[d.home]]++
	}
	for _, q := range []struct {
		what string
		f    func(context.Context) error
	}{
		{"everybody is back and owes nothing", func(ctx context.Context) error { return s.calm(ctx, wellAgain) }},
		{"every device holds what the database does", s.checkDevices},
		{"the server's lists and histories are the database's", s.checkViews},
		{"everybody can read everything", s.readAll},
		{"nothing is left over in the database", s.checkDatabase},
		{"presence is right with everybody there", func(ctx context.Context) error { return s.checkPresence(ctx, len(s.users)) }},
		{"nodes count the connections that there are", func(ctx context.Context) error { return s.checkGauges(ctx, all) }},
		{"nodes count at least what clients did", s.checkCounters},
		{"presence is right when every second one has left", s.halfLeaves},
		{"no ghosts when all have left", func(ctx context.Context) error {
			leave()
			return errors.Join(s.checkPresence(ctx, 0), s.checkGauges(ctx, nil), s.checkEmpty(ctx))
		}},
		{"goroutines and heap have not grown", s.checkGrowth},
		{"nodes end well, without races and panics", s.endNodes},
	} {
		if err := s.question(ctx, q.what, q.f); err != nil {
			return err
		}
	}
	return nil
}

// checkDevices waits until every device holds everything.
func (s *soak) checkDevices(ctx context.Context) error {
	return s.settles(ctx, 30*time.Second, false, func(db *check.Snapshot, wrong *check.Faults) error {
		for _, d := range s.devices {
			db.CompareRecord(d.record, wrong)
		}
		return nil
	}, func(db *check.Snapshot) {
		s.sends.Compare(db)
		s.compareDelivered(db)
		s.world.compareAnnounced(db)
	})
}

// untilRight looks until nothing is wrong, for d at most, and then adds what the last look
// has found. An error of the look is one only if it never succeeds.
func (s *soak) untilRight(ctx context.Context, d time.Duration, look func(context.Context, *check.Faults) error) error {
	var last *check.Faults
	err := within(ctx, d, func(ctx context.Context) error {
		var wrong check.Faults
		if err := look(ctx, &wrong); err != nil {
			return err
		}
		if last = &wrong; !wrong.None() {
			return errors.New("not yet")
		}
		return nil
	})
	if last == nil {
		return err
	}
	s.faults.Join(last)
	return ctx.Err()
}

// settles looks at the database until nothing is wrong, for d at most; then adds what is.
// once looks at the last snapshot at what needs no time.
func (s *soak) settles(ctx context.Context, d time.Duration, all bool, look func(*check.Snapshot, *check.Faults) error, once func(*check.Snapshot)) error {
	var db *check.Snapshot
	err := s.untilRight(ctx, d, func(ctx context.Context, wrong *check.Faults) error {
		now, err := s.snapshot(ctx, all)
		if err == nil {
			err = look(now, wrong)
		}
		if err == nil {
			db = now
		}
		return err
	})
	if err != nil {
		return err
	}
	if once != nil {
		once(db)
	}
	return nil
}

// checkViews compares the list of each user, and the history of each conversation as one of
// its members reads it, with the database.
func (s *soak) checkViews(ctx context.Context) error {
	if err := s.checkLists(ctx); err != nil {
		return err
	}
	db, err := s.snapshot(ctx, false)
	if err != nil {
		return err
	}
	byID := map[chat.ID]*user{}
	for _, u := range s.users {
		byID[u.id] = u
	}
	for id, c := range db.Conversations {
		var reader *user
		for member := range c.Members {
			reader = byID[member]
		}
		if reader == nil {
			s.faults.Add(check.Invented, "%s has no member of ours", id)
			continue
		}
		if err := s.checkHistory(ctx, db, reader, id); err != nil {
			return err
		}
	}
	return nil
}

// checkHistory has a user read a whole conversation, as a new device.
func (s *soak) checkHistory(ctx context.Context, db *check.Snapshot, reader *user, id chat.ID) error {
	record := check.NewRecord("a new device of "+reader.name, reader.id, &s.faults)
	for after := int64(0); ; {
		r, err := s.askAs(ctx, reader.index, "history", obj{"conversationId": id, "afterSeq": after})
		if err != nil {
			return err
		}
		for i := range r.Messages {
			if m := &r.Messages[i]; m.Seq <= after || !record.Keep(m) {
				s.faults.Add(check.Reordered, "history of %s: %d after %d", id, m.Seq, after)
			} else {
				after = m.Seq
			}
		}
		if !r.HasMore {
			break
		}
		if len(r.Messages) == 0 {
			s.faults.Add(check.Different, "history of %s has more after %d and does not give it", id, after)
			break
		}
	}
	only := check.Snapshot{Conversations: map[chat.ID]*check.Conversation{id: db.Conversations[id]}}
	only.CompareRecord(record, &s.faults)
	return nil
}

// checkLists compares the users' lists: positions may be on their way for a moment.
func (s *soak) checkLists(ctx context.Context) error {
	return s.settles(ctx, 20*time.Second, false, func(db *check.Snapshot, wrong *check.Faults) error {
		for _, u := range s.users {
			var views []chat.Conversation
			var total int64
			for cursor := ""; ; {
				payload := obj{"limit": 50}
				if cursor != "" {
					payload["cursor"] = cursor
				}
				r, err := s.askAs(ctx, u.index, "conversations", payload)
				if err != nil {
					return err
				}
				var page []chat.Conversation
				if err := json.Unmarshal(r.Conversations, &page); err != nil {
					return err
				}
				views, total = append(views, page...), r.UnreadTotal
				if r.NextCursor == nil || *r.NextCursor == "" {
					break
				}
				cursor = *r.NextCursor
			}
			db.CompareView(u.id, views, total, wrong)
		}
		return nil
	}, nil)
}

// readAll has every user read everything, and waits until the database says so.
func (s *soak) readAll(ctx context.Context) error {
	db, err := s.snapshot(ctx, false)
	if err != nil {
		return err
	}
	for _, u := range s.users {
		for id, c := range db.Conversations {
			if _, is := c.Members[u.id]; is && c.LastSeq > 0 {
				if _, err := s.askAs(ctx, u.index, "message:read", obj{"conversationId": id, "seq": c.LastSeq}); err != nil {
					return err
				}
			}
		}
	}
	err = s.settles(ctx, 20*time.Second, false, func(db *check.Snapshot, wrong *check.Faults) error {
		for id, c := range db.Conversations {
			for user, m := range c.Members {
				if m.Read != c.LastSeq || m.Delivered != c.LastSeq {
					wrong.Add(check.Positions, "%s has read %s up to the end, which is %d; stored is %d, and %d received", user, id, c.LastSeq, m.Read, m.Delivered)
				}
			}
		}
		return nil
	}, s.world.compareAnnounced)
	return errors.Join(err, s.checkLists(ctx))
}

// checkDatabase waits until what is under way is through: waits for notifications end with
// their time.
func (s *soak) checkDatabase(ctx context.Context) error {
	return s.settles(ctx, notifyWait+30*time.Second, true, func(db *check.Snapshot, wrong *check.Faults) error {
		db.Check(wrong, true)
		return nil
	}, func(db *check.Snapshot) {
		s.holes = db.Holes()
		for _, c := range db.Conversations {
			s.stored += len(c.Messages)
		}
	})
}

// checkCounters compares the counters of each node's last life with the connections that
// clients have made in it: the node may have seen more, whose answer was lost.
func (s *soak) checkCounters(ctx context.Context) error {
	for _, n := range s.cluster.nodes {
		m, err := n.metrics(ctx)
		if err != nil {
			return err
		}
		key := lifeOf{n.number, n.child.number()}
		if made, counted := s.stats.connected(key), int(m["xabar_sockets_connected_total"]); counted < made {
			s.faults.Add(check.Counters, "%s has counted %d sockets, of %d that clients have connected", n.name, counted, made)
		}
		if answered, counted := s.stats.answeredBy(key), int(m["xabar_events_total"]); counted < answered {
			s.faults.Add(check.Counters, "%s has counted %d events, and answered %d", n.name, counted, answered)
		}
	}
	return nil
}

// halfLeaves sends every second user away.
func (s *soak) halfLeaves(ctx context.Context) error {
	for i, d := range s.devices {
		if d.user.index%2 == 1 {
			s.devices[i].stayAway(true)
		}
	}
	err := within(ctx, 10*time.Second, func(context.Context) error {
		for _, d := range s.devices {
			if c, _ := d.connection(); c != nil && d.user.index%2 == 1 {
				return fmt.Errorf("%s does not leave", d.name)
			}
		}
		return nil
	})
	return errors.Join(err, s.checkPresence(ctx, len(s.users)))
}

func (s *soak) checkGrowth(ctx context.Context) error {
	check.CompareGrowth(s.samples, tolerance, &s.faults)
	pause(ctx, 2*time.Second)
	var idle []check.Sample
	for _, n := range s.cluster.nodes {
		sample, _, err := s.sample(ctx, n)
		if err != nil {
			return err
		}
		idle = append(idle, sample)
		if err := s.saveProfiles(ctx, n); err != nil {
			return err
		}
	}
	check.CompareIdle(s.fresh, idle, idleTolerance, &s.faults)
	s.samples = append(s.samples, idle...)
	return nil
}

// saveProfiles puts what a node without clients is made of beside its log.
func (s *soak) saveProfiles(ctx context.Context, n *node) error {
	for name, query := range map[string]string{"goroutine": "debug=1", "heap": "debug=0"} {
		body, err := get(ctx, n.admin+"/debug/pprof/"+name+"?"+query)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.opts.dir, n.name+"."+name), []byte(body), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endNodes drains all nodes and reads their logs.
func (s *soak) endNodes(context.Context) error {
	for _, n := range s.cluster.nodes {
		if err := n.drain(); err != nil {
			s.faults.Add(check.Crashed, "%v", err)
		}
		text, err := os.ReadFile(n.log)
		if err != nil {
			return err
		}
		for _, sign := range []string{"WARNING: DATA RACE", "panic: ", "fatal error: ", "goroutine stack exceeds"} {
			if at := strings.Index(string(text), sign); at >= 0 {
				s.faults.Add(check.Crashed, "%s: %.2000s", n.name, text[at:])
			}
		}
		s.readLog(string(text))
	}
	return nil
}

// readLog counts warnings and errors of the nodes by what they say.
func (s *soak) readLog(text string) {
	for line := range strings.Lines(text) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal([]byte(line), &entry) == nil && (entry.Level == "WARN" || entry.Level == "ERROR") {
			s.stats.count(&s.stats.logged, entry.Level+" "+entry.Msg)
		}
	}
}

// counts is a map as text.
func counts(of map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, of[name]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
