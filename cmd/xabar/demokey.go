package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"xabar/gateway/auth"
)

// demoKey is the secret of demo mode: made once, kept in the data folder, readable
// by its owner alone.
func demoKey(dataDir string) ([]byte, error) {
	path := filepath.Join(dataDir, "demo.key")
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDemoKey(dataDir, path); err != nil {
			return nil, err
		}
		key, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	if len(key) < auth.StrongSecretBytes {
		return nil, fmt.Errorf("%s is damaged; remove it and a new one is made", path)
	}
	return key, os.Chmod(path, 0o600)
}

// makeDemoKey writes a new key under a name of its own and links it into place, so
// that of processes that start together one wins and none reads half a key.
func makeDemoKey(dataDir, path string) error {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dataDir, "demo.key.*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	raw := make([]byte, auth.StrongSecretBytes)
	if _, err := rand.Read(raw); err != nil {
		return err
	}
	_, err = temp.WriteString(base64.RawURLEncoding.EncodeToString(raw))
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
