// Package doctest holds what is written in Markdown to what is there: links lead somewhere, files,
// packages and names of the code exist.
package doctest
