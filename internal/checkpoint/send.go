package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"chorus/internal/await"
)

const (
	tries     = 3
	oneTry    = 10 * time.Second // a slower target counts as down
	gitTime   = 30 * time.Second // a push over a slow line
	firstWait = time.Second
)

// Send sends a checkpoint to the configured targets. It tries every target a
// few times; an error names each that did not accept it.
func (k Keeper) Send(ctx context.Context, p Point) error {
	var errs []error
	if k.URL != "" {
		if err := k.again(ctx, func() error { return k.post(ctx, p) }); err != nil {
			errs = append(errs, fmt.Errorf("the checkpoint of %s of the audit log was not taken by audit.checkpointUrl: %w", p.What(), err))
		}
	}
	if k.Git != "" {
		if err := k.again(ctx, func() error { return k.commit(ctx, p) }); err != nil {
			errs = append(errs, fmt.Errorf("the checkpoint of %s of the audit log was not committed to audit.checkpointGit: %w", p.What(), err))
		}
	}
	return errors.Join(errs...)
}

// again tries a few times with pauses that double.
func (k Keeper) again(ctx context.Context, do func() error) (err error) {
	pause := cmp.Or(k.Pause, firstWait)
	for try := range tries {
		if try > 0 {
			if !await.For(ctx, pause<<(try-1)) {
				return errors.Join(err, ctx.Err())
			}
		}
		if err = do(); err == nil || errors.Is(err, errRewritten) {
			return err
		}
	}
	return err
}

func (k Keeper) post(ctx context.Context, p Point) error {
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("it is no address of the form https://host/path")
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%w", errors.Unwrap(err)) // the address may contain a key
	}
	_ = response.Body.Close()         // it may be endless, and its content does not matter
	if response.StatusCode/100 != 2 { // the target's own message may be anything
		return fmt.Errorf("it answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	return nil
}
