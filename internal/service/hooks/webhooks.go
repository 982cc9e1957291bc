package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"chorus/internal/chat"
	"chorus/internal/hook"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/webhook"
)

// ReceiveWebhook takes a request for a hook. Its signature proves that the sender has the hook's secret. A repeated
// delivery has no further effect. A missing hook, or one without a webhook, gives the same error as a wrong signature.
func (o *Handler) ReceiveWebhook(ctx context.Context, id string, h http.Header, body []byte) (operations.WebhookReceived, error) {
	var out operations.WebhookReceived
	found, err := o.rows.Hook(ctx, id)
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		return out, err
	}
	secret := found.Secret
	takes := err == nil && found.Trigger.Type == hook.Webhook && secret != ""
	if !takes {
		secret = newSecret()
	}
	d, err := webhook.Verify(secret, h, body, o.app.Now())
	if refused := (*webhook.RefusedError)(nil); errors.As(err, &refused) {
		return out, operation.Errorf(operation.Unsigned, "%s", refused.Why)
	}
	if err != nil {
		return out, err
	}
	if !json.Valid(body) || len(body) == 0 || body[0] != '{' {
		body, _ = json.Marshal(map[string]string{"text": string(body)}) // text always encodes
	}
	data := hook.BoundData(body, map[string]string{"event": d.Event, "delivery": d.ID})
	if !found.Trigger.Holds(data) {
		return operations.WebhookReceived{Why: "it does not match the hook's \"where\""}, nil
	}
	run, err := hook.NewRun(found, hook.Webhook, d.Key, chat.Principal{}, data)
	if err != nil {
		return out, err
	}
	done, err := o.rows.TriggerHook(ctx, hook.Triggered{Hook: found, Run: run, Delivery: d.Key, At: o.app.Now()})
	if err != nil {
		return out, err
	}
	o.hooksChanged()
	out = operations.WebhookReceived{Run: done.Run, Again: done.Again, Why: done.Why}
	if out.Why != "" {
		out.Run = ""
	}
	return out, nil
}
