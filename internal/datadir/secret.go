package datadir

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret is far longer than any key. It prevents reading a wrong path (a device, a log) completely.
const maxSecret = 64 << 10

// Secret reads a secret from the environment: NAME contains it, or NAME_FILE names the file
// that does (its content without surrounding space). If neither is set, the secret is
// empty, without an error. Errors never contain the secret.
func Secret(env func(string) string, name string) (string, error) {
	value, path := strings.TrimSpace(env(name)), strings.TrimSpace(env(name+"_FILE"))
	if path == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("both %s and %s_FILE are set; unset one of them", name, name)
	}
	value, err := SecretFile(path)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	return value, nil
}

// SecretFile reads a secret from a file, without surrounding space.
func SecretFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the secret: %w", err)
	case len(data) > maxSecret:
		return "", fmt.Errorf("%s is too long for a secret (over %d bytes); name the file that holds it alone", path, maxSecret)
	}
	value := strings.TrimSpace(string(data))
	switch {
	case value == "":
		return "", fmt.Errorf("%s is empty; write the secret into it", path)
	case strings.ContainsRune(value, 0):
		return "", fmt.Errorf("%s is not text; write the secret into it as plain text", path)
	}
	return value, nil
}
