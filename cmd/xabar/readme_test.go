package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"xabar/internal/testkit"
)

// readme is the README's text.
func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readmeCode is the code block that the README marks with this name.
func readmeCode(t *testing.T, name string) string {
	t.Helper()
	return testkit.DocBlock(t, "README.md", name)
}

// serveFlags are the flags of `xabar serve`, in order.
func serveFlags(t *testing.T) []*kong.Flag {
	t.Helper()
	parser, err := kong.New(new(cli), kong.DefaultEnvars(envPrefix))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Children {
		if node.Name == "serve" {
			return node.Flags
		}
	}
	t.Fatal("there is no serve")
	return nil
}

// TestReadmeListsEverySetting prints the table that should stand in the README.
func TestReadmeListsEverySetting(t *testing.T) {
	var table strings.Builder
	table.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
	for _, flag := range serveFlags(t) {
		value := ""
		switch {
		case flag.Default != "":
			value = "`" + flag.Default + "`"
		case flag.IsBool():
			value = "off"
		}
		help := strings.ReplaceAll(flag.Help, "|", `\|`)
		fmt.Fprintf(&table, "| `--%s` | `%s` | %s | %s |\n", flag.Name, strings.Join(flag.Envs, ", "), value, help)
	}
	if !strings.Contains(readme(t), "\n"+table.String()+"\n") {
		t.Fatalf("the README should have this table:\n\n%s", table.String())
	}
}
