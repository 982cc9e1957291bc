package webtest

import (
	"context"
	"os"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

// look stores a picture of the whole page in the folder LOOK, for whoever changes pages; without it nothing happens.
func (t *tab) look(name string) {
	t.Helper()
	dir := os.Getenv("LOOK")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, timeout)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), raw, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
