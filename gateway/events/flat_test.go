package events

import (
	"bytes"
	"encoding/json"
	"testing"
)

// flatPayloads are payloads in the usual form and out of it; usual says which.
var flatPayloads = []struct {
	text  string
	usual bool
}{
	{`{}`, true},
	{`{"conversationId":"a","clientMsgId":"b","text":"é 👋"}`, true},
	{` { "toUserId" : 42 , "text":"" ,"replyToSeq": -7 } `, true},
	{`{"toUserId":"x","replyToSeq":0}`, true},
	{`{"text":"first","text":"second"}`, true},
	{`{"conversationId":"a","seq":123456789012345678}`, true},
	{`{"text":"a\"b"}`, false},
	{`{"text":"\ud83d"}`, false},
	{"{\"text\":\"\xff\"}", false},
	{`{"text":null}`, false},
	{`{"Text":"folded"}`, false},
	{`{"text":7}`, false},
	{`{"replyToSeq":"7"}`, false},
	{`{"replyToSeq":1.0}`, false},
	{`{"replyToSeq":1e3}`, false},
	{`{"replyToSeq":007}`, false},
	{`{"seq":9223372036854775808}`, false},
	{`{"other":1}`, false},
	{`{"text":"a"} x`, false},
	{`{"text":"a",}`, false},
	{`{"toUserId":{}}`, false},
	{`{"text":"a`, false},
	{`[]`, false},
	{``, false},
}

func TestFlatRequestsReadAsJSONDoes(t *testing.T) {
	t.Parallel()
	for _, p := range flatPayloads {
		var send, seq = sendRequest{}, seqRequest{}
		usual := decodeFlat([]byte(p.text), &send) || decodeFlat([]byte(p.text), &seq)
		if usual != p.usual {
			t.Errorf("%s: taken %v", p.text, usual)
		}
		sameAsJSON[sendRequest](t, []byte(p.text))
		sameAsJSON[seqRequest](t, []byte(p.text))
		sameAsJSON[receiptsRequest](t, []byte(p.text))
	}
}

// sameAsJSON compares decode with encoding/json, for what the usual form is read from.
func sameAsJSON[Req any](t *testing.T, raw []byte) {
	t.Helper()
	var want, flat Req
	bad := json.Unmarshal(raw, &want)
	if !decodeFlat(raw, any(&flat).(flatRequest)) {
		return
	}
	if bad != nil || !bytes.Equal(exported(t, flat), exported(t, want)) {
		t.Errorf("%T of %q: %+v, by encoding/json %+v, %v", want, raw, flat, want, bad)
	}
	if got, err := decode[Req](raw); err != nil || !bytes.Equal(exported(t, got), exported(t, want)) {
		t.Errorf("%T of %q: %+v, %v, by encoding/json %+v", want, raw, got, err, want)
	}
}

// exported is what handlers see of a request.
func exported(t *testing.T, req any) []byte {
	t.Helper()
	text, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func FuzzFlatRequests(f *testing.F) {
	for _, p := range flatPayloads {
		f.Add([]byte(p.text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		sameAsJSON[sendRequest](t, raw)
		sameAsJSON[seqRequest](t, raw)
		sameAsJSON[receiptsRequest](t, raw)
	})
}

func TestUserRefsReadAsJSONDoes(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"a"`: "a", `"é"`: "é", `"a\u0062"`: "ab", `42`: "42", `"42"`: "42", `""`: "", `{}`: "", `"a" "b"`: "", `1.5`: "", `"\u0000"`: "",
	} {
		got, err := userRef("userId", json.RawMessage(raw))
		if want == "" {
			if err == nil {
				t.Errorf("%s is taken for %q", raw, got)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
}
