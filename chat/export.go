package chat

import "context"

// Blocked is an entry of an export: whom the user blocks.
type Blocked struct{ User User }

// Export gives everything that is kept of a user to emit, one thing after the other: a
// Profile, Contacts, Blocked, Conversations (without the others' words) and the
// user's own Messages. It reads page by page and is no snapshot. An error of emit
// ends it. Errors: invalid_argument, not_found.
func (s *Service) Export(ctx context.Context, ref UserRef, emit func(any) error) error {
	user, err := s.User(ctx, ref, "userId")
	if err != nil {
		return err
	}
	profile, err := s.profile(ctx, user.ID)
	if err != nil {
		return err
	}
	if err := emit(profile); err != nil {
		return err
	}
	store, id := s.store, user.ID
	if err := eachPage(emit, func(page PageRequest) (Page[Contact], error) { return store.Contacts(ctx, id, page) }); err != nil {
		return err
	}
	err = eachPage(emit, func(page PageRequest) (Page[Blocked], error) {
		users, err := store.Blocks(ctx, id, page)
		blocked := make([]Blocked, len(users.Items))
		for i, user := range users.Items {
			blocked[i].User = user
		}
		return Page[Blocked]{blocked, users.NextCursor}, err
	})
	if err != nil {
		return err
	}
	err = eachPage(emit, func(page PageRequest) (Page[Conversation], error) {
		list, err := store.Conversations(ctx, id, page)
		for i := range list.Conversations {
			list.Conversations[i].LastMessage = nil
		}
		return Page[Conversation]{list.Conversations, list.NextCursor}, err
	})
	if err != nil {
		return err
	}
	return eachPage(emit, func(page PageRequest) (Page[Message], error) { return store.MessagesOf(ctx, id, page) })
}

// eachPage emits the items of all pages.
func eachPage[T any](emit func(any) error, read func(PageRequest) (Page[T], error)) error {
	var request PageRequest
	for {
		page, err := read(request)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := emit(item); err != nil {
				return err
			}
		}
		if page.NextCursor == "" {
			return nil
		}
		request.Cursor = page.NextCursor
	}
}
