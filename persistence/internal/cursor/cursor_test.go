package cursor

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"xabar/chat"
)

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := Kind(rapid.IntRange(1, 5).Draw(t, "kind"))
		want := Cursor{At: rapid.Int64().Draw(t, "at"), ID: chat.NewID(), Name: rapid.String().Draw(t, "name")}
		s := Encode(kind, want)
		got, ok, err := Decode(kind, s)
		if err != nil || !ok || got != want {
			t.Fatalf("Decode(Encode(%+v)) = %+v, %v, %v", want, got, ok, err)
		}
		if _, _, err := Decode(kind+1, s); chat.CodeOf(err) != chat.CodeInvalidArgument {
			t.Fatalf("another list's cursor: %v", err)
		}
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	good := Encode(Sync, Cursor{ID: chat.NewID()})
	for _, s := range []string{"x", "????", good[1:], good[:len(good)-2], good[:20] + "AAAA" + good[24:]} {
		var e *chat.Error
		if _, _, err := Decode(Sync, s); !errors.As(err, &e) || e.Code != chat.CodeInvalidArgument || e.Field != "cursor" {
			t.Errorf("Decode(%q) = %v", s, err)
		}
	}
	if _, ok, err := Decode(Sync, ""); ok || err != nil {
		t.Errorf("the first page: %v, %v", ok, err)
	}
}
