// Package httpapi is Xabar's HTTP door beside Socket.IO: the public routes
// (NewPublic) and those of operators (NewAdmin), which listen on an address of
// their own. Both answer errors as JSON, {"error": {"code", "message", ...}}, with
// the codes and statuses of chat's table; this package maps them in one place
// (errors.go).
package httpapi
