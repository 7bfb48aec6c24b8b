// Package api is generated from ../openapi.yaml: the wire types and the server
// interface of the HTTP door. Change the description and run `go generate`; the
// generated code is committed, and make check says when it is out of date.
package api

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config config.yaml ../openapi.yaml
