package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// ListMembers implements api.ServerInterface.
func (s *server) ListMembers(c echo.Context, id api.ConversationID, params api.ListMembersParams) error {
	members, err := s.service.Members(c.Request().Context(), actor(c), id, page(params.Cursor, params.Limit))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.MemberPage{
		Members: each(members.Items, wireMember), NextCursor: cursor(members.NextCursor),
	})
}

// AddMembers implements api.ServerInterface.
func (s *server) AddMembers(c echo.Context, id api.ConversationID) error {
	req, err := decode[api.AddMembers](c)
	if err != nil {
		return err
	}
	added, err := s.service.AddMembers(c.Request().Context(), actor(c), id, req.UserIds)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, api.AddedMembers{Added: each(added, func(id chat.ID) chat.ID { return id })})
}

// SetRole implements api.ServerInterface.
func (s *server) SetRole(c echo.Context, id api.ConversationID, user api.UserID) error {
	req, err := decode[api.SetRole](c)
	if err != nil {
		return err
	}
	if err := s.service.SetRole(c.Request().Context(), actor(c), id, chat.UserRef(user), req.Role); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// RemoveMember implements api.ServerInterface.
func (s *server) RemoveMember(c echo.Context, id api.ConversationID, user api.UserID) error {
	if err := s.service.RemoveMember(c.Request().Context(), actor(c), id, chat.UserRef(user)); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
