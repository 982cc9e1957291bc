package runsetup

import (
	"fmt"

	"chorus/internal/config"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/participants"
	"chorus/internal/provider"
	"chorus/internal/settings"
)

// modelsFor returns how a thread resolves models, with the configured style.
func modelsFor(models *provider.Models, row journal.Thread, bot *config.Bot, b *Toolbox) func(string) (model.Handle, error) {
	style := settings.Style(bot, row.Agent)
	if !settings.NamesParticipants(bot) {
		if !row.ID.OnPlatform() {
			return models.Resolve
		}
		style = participants.Style{Mode: participants.Untold} // what a model thinks aloud is not told to everybody
	}
	return func(name string) (model.Handle, error) {
		made, err := models.Resolve(name)
		if err != nil {
			return made, err
		}
		made.Model = b.styled(style, name, made)
		return made, nil
	}
}

// styledModel is a model that is told conversations in a style. It remembers what
// it told, so it is kept as long as the style stays the same.
type styledModel struct {
	style string
	inner model.Model
	model model.Model
}

func (b *Toolbox) styled(s participants.Style, name string, e model.Handle) model.Model {
	key := fmt.Sprintf("%+v", s)
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.styledModels[name]; ok && t.style == key && t.inner == e.Model {
		return t.model
	}
	t := styledModel{key, e.Model, s.Wrap(e.Model, e.Entry)}
	b.styledModels[name] = t
	return t.model
}
