// Package auth turns a bearer token into a chat.Actor.
//
// A token is a signed JWT with `sub` and `exp`; `name`, if it is there, names
// the user. The signature decides who may speak for whom, so the algorithms that
// are accepted follow from the keys that are configured and never from the token:
// an HMAC secret takes HS256 alone, an RSA key RS256 alone, and so on. `none`
// does not exist here.
//
// `sub` names the user as everywhere in Xabar (chat.UserRef): a UUID is the id,
// any other string and any integer an external id. The user is made by its first
// token.
//
//	keys := auth.NewKeys()
//	err := keys.AddSecret(secret)          // or AddPublicKeys, AddJWKS
//	a := auth.New(keys, store, auth.Options{})
//	actor, err := a.Authenticate(ctx, token)
package auth
