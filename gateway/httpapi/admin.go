package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// CreateUser implements api.ServerInterface.
func (s *server) CreateUser(c echo.Context) error {
	req, err := decode[api.CreateUser](c)
	if err != nil {
		return err
	}
	user, err := s.service.CreateUser(c.Request().Context(), req.User, chat.UserChange{Name: req.Name, AvatarURL: req.AvatarURL})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, wireUser(user))
}

// GetUser implements api.ServerInterface.
func (s *server) GetUser(c echo.Context, user api.UserID) error {
	found, err := s.service.User(c.Request().Context(), chat.UserRef(user), "userId")
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wireUser(found))
}

// UpdateUser implements api.ServerInterface.
func (s *server) UpdateUser(c echo.Context, user api.UserID) error {
	req, err := decode[api.UpdateUser](c)
	if err != nil {
		return err
	}
	changed, err := s.service.UpdateUser(c.Request().Context(), chat.UserRef(user), chat.UserChange{Name: req.Name, AvatarURL: req.AvatarURL})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wireUser(changed))
}

// EraseUser implements api.ServerInterface.
func (s *server) EraseUser(c echo.Context, user api.UserID) error {
	return aboutUser(c, user, s.service.Erase)
}

// DisconnectUser implements api.ServerInterface.
func (s *server) DisconnectUser(c echo.Context, user api.UserID) error {
	return aboutUser(c, user, s.service.Disconnect)
}

// RevokeUser implements api.ServerInterface.
func (s *server) RevokeUser(c echo.Context, user api.UserID) error {
	return aboutUser(c, user, s.service.Revoke)
}

// aboutUser does something about a user that has no answer.
func aboutUser(c echo.Context, user api.UserID, do func(context.Context, chat.UserRef) error) error {
	if err := do(c.Request().Context(), chat.UserRef(user)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// ListSessions implements api.ServerInterface.
func (s *server) ListSessions(c echo.Context, user api.UserID) error {
	ctx := c.Request().Context()
	found, err := s.service.User(ctx, chat.UserRef(user), "userId")
	if err != nil {
		return err
	}
	sessions, err := s.sessions.Sessions(ctx, found.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.Sessions{Sessions: each(sessions, wireSession)})
}

// SendSystemMessage implements api.ServerInterface.
func (s *server) SendSystemMessage(c echo.Context) error {
	req, err := decode[api.SystemMessage](c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	sent, err := await(ctx, func(done func(chat.Sent, error)) {
		s.service.SendAsSystem(ctx, chat.SendRequest{
			ConversationID: req.ConversationID, ToUser: req.UserID, ClientMsgID: req.ClientMsgID, Text: req.Text,
		}, done)
	})
	return answerSent(c, sent, err)
}
