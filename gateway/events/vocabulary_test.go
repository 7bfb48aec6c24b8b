package events

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"xabar/gateway/dialect"
	"xabar/gateway/socketio"
)

// What the checker of dialects knows of the standard events must be what is handled here.
func TestDialectsKnowTheStandardEvents(t *testing.T) {
	known := dialect.RequestFields()
	handled := map[string]any{
		"message:send": sendRequest{}, "message:delivered": seqRequest{}, "message:read": seqRequest{},
		"typing": struct {
			ConversationID *string `json:"conversationId"`
		}{},
		"history": historyRequest{}, "sync": syncRequest{}, "members": pageRequest{}, "conversations": pageRequest{},
		"conversation:open": openRequest{}, "receipts": receiptsRequest{}, "contacts": pageRequest{},
		"presence": presenceRequest{}, "auth:refresh": refreshRequest{},
	}
	h := New(Config{})
	server := socketio.NewServer(socketio.Options{})
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	h.ns = server.Namespace
	h.registerEvents()
	if a, b, c := slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(handled)), slices.Sorted(maps.Keys(h.actions)); !slices.Equal(a, b) || !slices.Equal(a, c) {
		t.Fatalf("dialects know %v\nthe test knows %v\nthe hub handles %v", a, b, c)
	}
	for event, request := range handled {
		object := map[string]any{}
		addFieldNames(object, reflect.TypeOf(request))
		if a, b := slices.Sorted(slices.Values(known[event])), slices.Sorted(maps.Keys(object)); !slices.Equal(a, b) {
			t.Errorf("%s: dialects know %v, it reads %v", event, a, b)
		}
	}
}

func addFieldNames(names map[string]any, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			addFieldNames(names, field.Type)
		} else if name != "" {
			names[name] = json.RawMessage(nil)
		}
	}
}
