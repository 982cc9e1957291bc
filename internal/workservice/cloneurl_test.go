package workservice

import (
	"strings"
	"testing"
)

func TestCheckCloneURL(t *testing.T) {
	t.Parallel()
	for address, why := range map[string]string{
		"https://127.0.0.1/a.git":             "cannot be cloned",
		"https://[::1]/a.git":                 "cannot be cloned",
		"http://example.org/a.git":            "begin with https://",
		"git@example.org:a.git":               "begin with https://",
		"file:///etc":                         "begin with https://",
		"https://":                            "begin with https://",
		"https://me:secret@example.org/a.git": "must not contain a name",
	} {
		if err := CheckCloneURL(t.Context(), address); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
