package loadtest

import "testing"

func TestObjectKey(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{`"a-uuid"`: `"a-uuid"`, `17`: `"17"`} {
		if got := objectKey(id); got != want {
			t.Errorf("%s is the key %s, want %s", id, got, want)
		}
	}
}
