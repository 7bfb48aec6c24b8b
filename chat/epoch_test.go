package chat_test

import (
	"context"
	"slices"
	"testing"

	"xabar/chat"
)

// syncStore answers what a sync asks for.
type syncStore struct {
	chat.Store
	check chat.PositionCheck
	asked chat.SyncQuery // the last one
	moved []chat.ID
}

func (s *syncStore) CheckPositions(context.Context, chat.ID, map[chat.ID]chat.SyncPosition) (chat.PositionCheck, error) {
	return s.check, nil
}

func (s *syncStore) Sync(_ context.Context, _ chat.ID, q chat.SyncQuery) (chat.SyncPage, error) {
	s.asked = q
	var page chat.SyncPage
	for _, id := range []chat.ID{{1}, {2}, {3}} {
		page.Conversations = append(page.Conversations, chat.SyncConversation{Conversation: chat.Conversation{ID: id}})
	}
	return page, nil
}

func (s *syncStore) MovePosition(_ context.Context, m chat.PositionMove, _ func(chat.PositionResult, error)) {
	s.moved = append(s.moved, m.ConversationID)
}

func TestSyncOfAnotherHistory(t *testing.T) {
	t.Parallel()
	epoch := chat.ID{9}
	positions := map[chat.ID]chat.SyncPosition{{1}: {Seq: 5}, {2}: {Seq: 9}, {4}: {Seq: 3}}
	for name, c := range map[string]struct {
		epoch, cursor string
		asked, reset  []chat.ID
		moved, gone   []chat.ID
		all           bool
	}{
		"epoch unknown":    {"", "", []chat.ID{{1}, {4}}, []chat.ID{{2}}, []chat.ID{{1}}, []chat.ID{{4}}, false},
		"the same epoch":   {epoch.String(), "", []chat.ID{{1}, {4}}, []chat.ID{{2}}, []chat.ID{{1}}, []chat.ID{{4}}, false},
		"another epoch":    {chat.ID{8}.String(), "", nil, []chat.ID{{1}, {2}}, nil, []chat.ID{{4}}, true},
		"no epoch at all":  {"nonsense", "", nil, []chat.ID{{1}, {2}}, nil, []chat.ID{{4}}, true},
		"on a later page":  {"", "next", []chat.ID{{1}, {4}}, []chat.ID{{2}}, nil, nil, false},
		"later, elsewhere": {chat.ID{8}.String(), "next", nil, []chat.ID{{1}, {2}}, nil, nil, true},
	} {
		store := &syncStore{check: chat.PositionCheck{Epoch: epoch, Reset: []chat.ID{{2}}, News: []chat.ID{{1}}, Gone: []chat.ID{{4}}}}
		service := chat.NewService(chat.ServiceConfig{Store: store})
		page, err := service.Sync(t.Context(), chat.Actor{}, chat.SyncQuery{Positions: positions, Epoch: c.epoch, Cursor: c.cursor})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var asked, reset []chat.ID
		for id := range store.asked.Positions {
			asked = append(asked, id)
		}
		slices.SortFunc(asked, func(a, b chat.ID) int { return slices.Compare(a[:], b[:]) })
		for _, s := range page.Conversations {
			if s.Reset {
				reset = append(reset, s.Conversation.ID)
			}
		}
		if !slices.Equal(asked, c.asked) || !slices.Equal(reset, c.reset) || !slices.Equal(store.moved, c.moved) ||
			!slices.Equal(page.Gone, c.gone) || page.Reset != c.all || page.Epoch != epoch {
			t.Errorf("%s: the store was asked after %v, reset %v, delivered %v, gone %v, all %v", name, asked, reset, store.moved, page.Gone, page.Reset)
		}
	}
	if len(positions) != 3 {
		t.Error("the caller's positions were changed")
	}
}

func TestSyncOfAllThereIsAsksOnce(t *testing.T) {
	t.Parallel()
	epoch := chat.ID{9}
	positions := map[chat.ID]chat.SyncPosition{{1}: {Seq: 5}, {4}: {Seq: 3}}
	for name, c := range map[string]struct {
		epoch, cursor string
		asks          bool
	}{
		"first":            {"", "", false},
		"the same epoch":   {epoch.String(), "", false},
		"another epoch":    {chat.ID{8}.String(), "", true},
		"on a later page":  {"", "next", true},
		"later, elsewhere": {chat.ID{8}.String(), "next", true},
	} {
		store := &syncStore{check: chat.PositionCheck{Epoch: epoch, News: []chat.ID{{1}}, Gone: []chat.ID{{4}}, Current: true}}
		service := chat.NewService(chat.ServiceConfig{Store: store})
		page, err := service.Sync(t.Context(), chat.Actor{}, chat.SyncQuery{Positions: positions, Epoch: c.epoch, Cursor: c.cursor})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if asked := len(page.Conversations) > 0; asked != c.asks {
			t.Errorf("%s: asked %v", name, asked)
		}
		if page.Conversations == nil || page.Epoch != epoch || c.cursor == "" && !slices.Equal(page.Gone, []chat.ID{{4}}) {
			t.Errorf("%s: %+v", name, page)
		}
		if name == "first" && !slices.Equal(store.moved, []chat.ID{{1}}) {
			t.Errorf("%s: delivered %v", name, store.moved)
		}
	}
}
