package agents

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/service"
)

// ListProfiles implements the operation of that name.
func (o *Handler) ListProfiles(_ context.Context, by operation.Caller, in operations.ProfileQuery) (out operation.List[operations.Profile], err error) {
	bot, err := o.app.Settings.Bot(cmp.Or(in.Agent, chat.DefaultAgent))
	if err != nil {
		return out, err
	}
	own := cmp.Or(bot.Permissions, service.StandardProfile)
	names := slices.Concat([]string{service.StandardProfile}, permit.Presets(), slices.Sorted(maps.Keys(bot.Profiles)), []string{own})
	for i, name := range names {
		if slices.Contains(names[:i], name) || !o.sessions.MayChoose(by, name) {
			continue
		}
		out.Items = append(out.Items, operations.Profile{Name: name, About: permit.About(name), Standard: name == own})
	}
	return out, nil
}
