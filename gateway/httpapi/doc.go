// Package httpapi is Xabar's HTTP door beside Socket.IO: the public routes
// (NewPublic) and those of operators (NewAdmin), which listen on an address of
// their own.
//
// openapi.yaml is the source of the public routes: package api has the types and
// the server interface that are generated from it, requests are validated against
// it, and it is served, with a page that renders it, to whoever asks. To add an
// operation, describe it there, run go generate, implement the method, and add its
// calls to the validate package, which drives every documented status.
//
// A request passes, in this order: request id and deadlines (transport.go), the
// origin, who calls and how often (access.go), the body's size and shape
// (validation.go), then its handler, which calls chat.Service as the Socket.IO
// events do. Errors become JSON in one place (errors.go). Wire types are made from
// chat's in wire.go.
package httpapi
