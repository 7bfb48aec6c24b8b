package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// exportLine is one line of an export.
type exportLine struct {
	Type string `json:"type"`
	Data any    `json:"data"`
}

// ExportUser implements api.ServerInterface. The answer begins with the first line,
// so that a user who is not there is an error like any other; what fails later
// leaves the last line out.
func (s *server) ExportUser(c echo.Context, user api.UserID) error {
	w := c.Response()
	control := http.NewResponseController(w.Writer)
	encoder := json.NewEncoder(w)
	count := 0
	write := func(line exportLine) error {
		if count == 0 {
			w.Header().Set(echo.HeaderContentType, "application/x-ndjson")
			w.WriteHeader(http.StatusOK)
		}
		if count++; count%chat.PageLimit == 0 { // a reader that keeps up may read for long
			if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
		}
		return encoder.Encode(line)
	}
	err := s.service.Export(c.Request().Context(), chat.UserRef(user), func(thing any) error {
		lines, err := exportLines(thing)
		for _, line := range lines {
			if err := write(line); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return write(exportLine{Type: "end"})
}

func exportLines(thing any) ([]exportLine, error) {
	switch t := thing.(type) {
	case chat.Profile:
		me := wireMe(t)
		settings := struct {
			api.Me
			User *struct{} `json:"user,omitempty"` // has a line of its own
		}{Me: me}
		return []exportLine{{"user", me.User}, {"settings", settings}}, nil
	case chat.Contact:
		return []exportLine{{"contact", wireUser(t.User)}}, nil
	case chat.Blocked:
		return []exportLine{{"blocked", wireUser(t.User)}}, nil
	case chat.Conversation:
		return []exportLine{{"conversation", wireConversation(t)}}, nil
	case chat.Message:
		return []exportLine{{"message", wireMessage(t)}}, nil
	}
	return nil, fmt.Errorf("httpapi: no line for %T", thing)
}
