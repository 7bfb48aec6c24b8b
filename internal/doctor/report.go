package doctor

import (
	"fmt"
	"net/url"
	"strings"
)

// Level says how a finding is meant.
type Level string

// The levels: all is well; works, but look at it; does not work, or breaks a guarantee.
const (
	OK      Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Finding is one thing that was looked at.
type Finding struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	Level   Level  `json:"level"`
	Found   string `json:"found"`
	Do      string `json:"do,omitempty"` // what to do about it
}

// Report collects findings in the order in which they were made. It is for one goroutine.
type Report struct {
	findings []Finding
	secrets  []string
}

// hidden stands where a secret was.
const hidden = "xxxxx"

// Hide keeps these texts out of all findings that follow: errors of drivers and servers may
// repeat what they were given.
func (r *Report) Hide(secrets ...string) {
	for _, s := range secrets {
		r.hide(s)
	}
}

// HideURL keeps the passwords of URLs out.
func (r *Report) HideURL(addresses ...string) {
	for _, s := range addresses {
		u, err := url.Parse(s)
		if err != nil { // what can't be read is taken apart by hand
			_, rest, _ := strings.Cut(s, "://")
			if at := strings.LastIndex(rest, "@"); at > 0 {
				_, password, _ := strings.Cut(rest[:at], ":")
				r.hide(password)
			}
			continue
		}
		if password, ok := u.User.Password(); ok {
			r.Hide(password, url.QueryEscape(password), url.PathEscape(password))
		}
		r.hide(u.Query().Get("password"))
	}
}

func (r *Report) hide(s string) {
	const guessable = 3 // a shorter one would take letters out of every word
	if len(s) >= guessable {
		r.secrets = append(r.secrets, s)
	}
}

func (r *Report) clean(text string) string {
	for _, s := range r.secrets {
		text = strings.ReplaceAll(text, s, hidden)
	}
	return strings.TrimSpace(strings.Join(strings.Fields(text), " "))
}

// Add adds a finding.
func (r *Report) Add(f Finding) {
	f.Found, f.Do = r.clean(f.Found), r.clean(f.Do)
	r.findings = append(r.findings, f)
}

// Findings are all of them.
func (r *Report) Findings() []Finding { return r.findings }

// Count is how many findings have this level.
func (r *Report) Count(level Level) int {
	n := 0
	for _, f := range r.findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Section gives what follows a heading.
func (r *Report) Section(name string) Section { return Section{r, name} }

// Section adds findings under one heading.
type Section struct {
	report *Report
	name   string
}

// OK says that something is well.
func (s Section) OK(name, format string, args ...any) {
	s.report.Add(Finding{Section: s.name, Name: name, Level: OK, Found: fmt.Sprintf(format, args...)})
}

// Warn says that something works but should be looked at, and what to do.
func (s Section) Warn(name, do, format string, args ...any) {
	s.report.Add(Finding{Section: s.name, Name: name, Level: Warning, Found: fmt.Sprintf(format, args...), Do: do})
}

// Problem says that something does not work, and what to do.
func (s Section) Problem(name, do, format string, args ...any) {
	s.report.Add(Finding{Section: s.name, Name: name, Level: Problem, Found: fmt.Sprintf(format, args...), Do: do})
}
