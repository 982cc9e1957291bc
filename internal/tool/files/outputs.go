package files

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"chorus/internal/digest"
)

// Keep stores a long output as @outputs/<call>.txt in the root "outputs" and implements
// tool.Keep. The id of a call may come from a model, so it is converted to a plain name,
// and a second text under the same id gets another name.
func (r *Roots) Keep(ctx context.Context, callID, text string) (string, error) {
	if r.roots["outputs"] == nil {
		return "", fmt.Errorf("keep output of call %s: there is no root @outputs", callID)
	}
	short := digest.Of(text)[:12]
	base := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, callID)
	if len(base) > 100 {
		base = base[:100]
	}
	base = cmp.Or(base, short)
	for _, name := range []string{base, base + "-" + short} {
		d, err := r.target(Place{"outputs", name + ".txt"})
		if err != nil {
			return "", err
		}
		if d, err = r.load(d); err == nil && d.exists && d.old == text {
			return d.place.String(), nil
		}
		if err != nil || d.exists {
			continue
		}
		return d.place.String(), r.save(d, text)
	}
	return "", fmt.Errorf("keep output of call %s: no free name", callID)
}
