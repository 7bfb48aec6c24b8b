//go:build !race

package tracing

import (
	"testing"

	"xabar/chat"
)

// With traces on, one that is not recorded costs no memory.
func TestWhatIsNotRecordedAllocatesNothing(t *testing.T) {
	exporter := newStuck()
	tracer := tracerTo(exporter)
	tracer.ratio = 0
	var port chat.Tracer = tracer
	const unrecorded = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	if n := testing.AllocsPerRun(1000, func() {
		chat.EndSpan(chat.StartSpan(port, nil, chat.ServerSpan, "x"), nil)
		chat.EndSpan(port.StartFrom("", chat.ServerSpan, "x"), nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if port.StartFrom(unrecorded, chat.ServerSpan, "x") != nil {
		t.Error("what its beginner does not record is recorded")
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
