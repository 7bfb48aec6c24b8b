package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// npmPackage is one of the packages that the page was built from.
type npmPackage struct {
	Name, Version, License string
	SHA512                 string // hexadecimal
}

// npmPackages are those of a lock file (version 3) that can get into the page: not the tools
// that build and test it.
func npmPackages(lockFile string) ([]npmPackage, error) {
	text, err := os.ReadFile(lockFile)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Version  int `json:"lockfileVersion"`
		Packages map[string]struct {
			Version, License, Integrity string
			Dev, DevOptional            bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", lockFile, err)
	}
	if lock.Version != 3 {
		return nil, fmt.Errorf("%s has version %d, not 3", lockFile, lock.Version)
	}
	var packages []npmPackage
	for path, entry := range lock.Packages {
		_, name, inside := cutLast(path, "node_modules/")
		if !inside || entry.Dev || entry.DevOptional {
			continue
		}
		digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(entry.Integrity, "sha512-"))
		if err != nil || len(digest) != 64 {
			return nil, fmt.Errorf("%s: %s has no SHA-512", lockFile, path)
		}
		packages = append(packages, npmPackage{name, entry.Version, entry.License, hex.EncodeToString(digest)})
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("%s names no package", lockFile)
	}
	slices.SortFunc(packages, func(a, b npmPackage) int { return strings.Compare(a.purl(), b.purl()) })
	return packages, nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// purl names a package among all ecosystems: https://github.com/package-url/purl-spec.
func (p npmPackage) purl() string {
	return "pkg:npm/" + strings.ReplaceAll(p.Name, "@", "%40") + "@" + url.PathEscape(p.Version)
}

// component is the package in CycloneDX's JSON.
func (p npmPackage) component() map[string]any {
	component := map[string]any{
		"bom-ref": p.purl(), "type": "library", "name": p.Name, "version": p.Version,
		"scope": "required", "purl": p.purl(),
		"hashes": []any{map[string]any{"alg": "SHA-512", "content": p.SHA512}},
	}
	if p.License != "" {
		component["licenses"] = []any{map[string]any{"license": map[string]any{"id": p.License}}}
	}
	return component
}

// billOfMaterials is CycloneDX's JSON of a binary: the Go modules in it, read from the binary
// itself, and the packages of the page.
func (r *Release) billOfMaterials(ctx context.Context, binary string, packages []npmPackage) ([]byte, error) {
	path := filepath.Join(filepath.Dir(binary), "bom.json")
	cmd := exec.CommandContext(ctx, r.BOMTool, "bin", "-json", "-noserial", "-std", "-version", r.Version, "-output", path, binary)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", r.BOMTool, err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return completeBOM(text, packages, r.Time)
}

// completeBOM adds the packages to the bill and puts the commit's time in place of the clock's.
func completeBOM(text []byte, packages []npmPackage, at time.Time) ([]byte, error) {
	var bom map[string]any
	if err := json.Unmarshal(text, &bom); err != nil {
		return nil, err
	}
	metadata, hasMetadata := bom["metadata"].(map[string]any)
	components, hasComponents := bom["components"].([]any)
	if !hasMetadata || !hasComponents || bom["bomFormat"] != "CycloneDX" {
		return nil, errors.New("this is no bill of materials with components")
	}
	metadata["timestamp"] = at.Format(time.RFC3339)
	// How the tool was built says nothing of the binary, and differs between machines.
	tools, _ := metadata["tools"].([]any)
	for _, tool := range tools {
		if tool, ok := tool.(map[string]any); ok {
			delete(tool, "hashes")
		}
	}
	for _, p := range packages {
		components = append(components, p.component())
	}
	bom["components"] = components
	if root, ok := metadata["component"].(map[string]any); ok {
		dependOn(bom, root["bom-ref"], packages)
	}
	out, err := json.MarshalIndent(bom, "", "  ")
	return append(out, '\n'), err
}

// dependOn says in the bill that the binary depends on the packages.
func dependOn(bom map[string]any, root any, packages []npmPackage) {
	dependencies, _ := bom["dependencies"].([]any)
	for _, each := range dependencies {
		dependency, ok := each.(map[string]any)
		if !ok || dependency["ref"] != root {
			continue
		}
		on, _ := dependency["dependsOn"].([]any)
		for _, p := range packages {
			on = append(on, p.purl())
		}
		dependency["dependsOn"] = on
		return
	}
}
