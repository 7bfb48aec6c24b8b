package dialect

import (
	"embed"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed shipped/*.yaml
var shipped embed.FS

// Set are the dialects that a node speaks. The nil Set has none.
type Set struct {
	byName map[string]*Dialect
}

// Load reads the shipped dialects and, if folder is not "", every .yaml and .yml file
// in it. The error joins every Mistake.
func Load(folder string) (*Set, error) {
	within, err := fs.Sub(shipped, "shipped")
	if err != nil {
		return nil, err
	}
	s := &Set{byName: map[string]*Dialect{}}
	errs := s.add(within, "")
	if folder != "" {
		errs = append(errs, s.add(os.DirFS(folder), folder)...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Set) add(files fs.FS, folder string) (errs []error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return []error{err}
	}
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); entry.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		text, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := s.Add(filepath.Join(folder, entry.Name()), text); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Add parses one more description. Its name and namespace must be new.
func (s *Set) Add(file string, text []byte) error {
	d, err := Parse(file, text)
	if err != nil {
		return err
	}
	if s.byName[d.Name] != nil {
		return Mistake{file, 0, "there is a dialect " + d.Name + " already"}
	}
	if d.Namespace != "" && s.ByNamespace(d.Namespace) != nil {
		return Mistake{file, 0, "the namespace " + d.Namespace + " is another dialect's"}
	}
	if s.byName == nil {
		s.byName = map[string]*Dialect{}
	}
	s.byName[d.Name] = d
	return nil
}

// All are the dialects, by name.
func (s *Set) All() []*Dialect {
	if s == nil {
		return nil
	}
	all := make([]*Dialect, 0, len(s.byName))
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		all = append(all, s.byName[name])
	}
	return all
}

// Get finds a dialect by the name that a client gives; nil for the standard events
// ("" and "standard"). known is false when there is no such dialect.
func (s *Set) Get(name string) (d *Dialect, known bool) {
	if name == "" || name == reserved {
		return nil, true
	}
	if s == nil {
		return nil, false
	}
	d, known = s.byName[name]
	return d, known
}

// ByNamespace finds the dialect of a namespace; nil if it has none.
func (s *Set) ByNamespace(namespace string) *Dialect {
	if s == nil {
		return nil
	}
	for _, d := range s.byName {
		if d.Namespace == namespace {
			return d
		}
	}
	return nil
}

// Names are the dialects' names, for people.
func (s *Set) Names() string {
	if s == nil {
		return reserved
	}
	return strings.Join(append([]string{reserved}, slices.Sorted(maps.Keys(s.byName))...), ", ")
}
