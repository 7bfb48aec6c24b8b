package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// ListContacts implements api.ServerInterface.
func (s *server) ListContacts(c echo.Context, params api.ListContactsParams) error {
	contacts, err := s.service.Contacts(c.Request().Context(), actor(c), page(params.Cursor, params.Limit))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.ContactPage{
		Contacts: each(contacts.Items, wireContact), NextCursor: cursor(contacts.NextCursor),
	})
}

// AddContact implements api.ServerInterface.
func (s *server) AddContact(c echo.Context) error {
	req, err := decode[api.AddContact](c)
	if err != nil {
		return err
	}
	user, err := s.service.AddContact(c.Request().Context(), actor(c), req.UserID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, wireUser(user))
}

// RemoveContact implements api.ServerInterface.
func (s *server) RemoveContact(c echo.Context, user api.UserID) error {
	return withUser(c, user, s.service.RemoveContact)
}

// BlockUser implements api.ServerInterface.
func (s *server) BlockUser(c echo.Context, user api.UserID) error {
	return withUser(c, user, s.service.Block)
}

// UnblockUser implements api.ServerInterface.
func (s *server) UnblockUser(c echo.Context, user api.UserID) error {
	return withUser(c, user, s.service.Unblock)
}

// withUser does something about another user that has no answer.
func withUser(c echo.Context, user api.UserID, do func(context.Context, chat.Actor, chat.UserRef) error) error {
	if err := do(c.Request().Context(), actor(c), chat.UserRef(user)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
