package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"chorus/internal/config"
	"chorus/internal/documents"
	"chorus/internal/gate"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/settings"
)

// Models implements the operation of that name.
func (o *Handler) Models(ctx context.Context, _ operation.Caller, _ operation.None) (operation.List[operations.Model], error) {
	out := operation.List[operations.Model]{Items: []operations.Model{}}
	catalog, err := o.app.Discovery.Catalog(o.app.Models.Listed())
	if err != nil {
		return out, err
	}
	vendors, err := o.app.Models.Vendors()
	if err != nil {
		return out, err
	}
	ready := map[string]bool{}
	for _, v := range vendors {
		ready[v.Name] = v.Provider().Offline || v.Configured()
	}
	for _, m := range catalog.Models {
		provider, _, _ := strings.Cut(m.Name, "/")
		out.Items = append(out.Items, operations.Model{Name: m.Name, Provider: provider, Ready: ready[provider], ContextWindow: m.Window, MaxOutput: m.Output,
			InputPrice: perMillion(m.Input), OutputPrice: perMillion(m.OutputFor), Can: m.Can, Default: m.Name == catalog.Default})
	}
	return out, nil
}

// perMillion is the price of a million tokens in dollars.
func perMillion(nanos int64) float64 { return float64(nanos) / 1e3 }

// Settings implements the operation of that name.
func (o *Handler) Settings(ctx context.Context, _ operation.Caller, _ operation.None) (operation.List[operations.Setting], error) {
	out := operation.List[operations.Setting]{Items: []operations.Setting{}}
	bot, err := o.app.Settings.Bot("")
	if err != nil {
		return out, err
	}
	for _, row := range bot.Rows() {
		out.Items = append(out.Items, o.Setting(row))
	}
	return out, nil
}

// Setting shows a key of the configuration; secrets are masked in the row already.
func (o *Handler) Setting(row config.Row) operations.Setting {
	s := operations.Setting{Key: row.Key, Label: row.Label, Value: o.app.Logs.Redactor().Text(shownValue(row.Value)), Fixed: true}
	if row.File != "" || row.Layer != config.BuiltIn.String() {
		s.Source = row.From()
	}
	for _, section := range config.Sections() {
		for _, k := range section.Keys {
			if k.Path != row.Path {
				continue
			}
			s.Section, s.Doc, s.Kind, s.Choices = section.Title, k.Doc, string(k.Kind), k.Choices
			if k.Default != nil && !k.Secret {
				s.Default = shownValue(k.Default)
			}
			s.Fixed = !settable(k) || s.Source != "" && filepath.Clean(row.File) != o.app.Home.Settings()
		}
	}
	return s
}

func shownValue(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(data)
	}
}

// settable reports whether this operation can set a key: plain values that are not secrets and do not say where the data is.
func settable(k config.Key) bool {
	switch k.Kind {
	case config.List:
		return k.Path == "workspaces" // an admin could open a folder to others by a request
	case config.Text, config.Integer, config.Number, config.Bool:
		return !k.Secret && !strings.Contains(k.Path, "*") && k.Path != "databaseUrl" && k.Path != "natsUrl" && k.Path != "blobUrl" && !strings.HasSuffix(k.Path, "File")
	default:
		return false
	}
}

// SetSetting implements the operation of that name: it changes settings.json of the home, if the result is valid. An
// empty value removes the key.
func (o *Handler) SetSetting(ctx context.Context, by operation.Caller, in operations.SettingValue) (operations.Setting, error) {
	key, value := in.Key, in.Value
	var meant *config.Key
	for _, k := range config.Keys() {
		if k.Path == key {
			meant = &k
		}
	}
	switch {
	case meant == nil:
		return operations.Setting{}, operation.Errorf(operation.NotFound, "there is no setting %.80q", key)
	case !settable(*meant):
		return operations.Setting{}, operation.Errorf(operation.Conflict, "%s cannot be set here; write it into a file of %s", key, o.app.Home.Config())
	}
	now, err := o.findSetting(ctx, by, key)
	if err != nil {
		return now, err
	}
	if now.Fixed {
		return now, &operation.Error{Kind: operation.Conflict, Message: key + " is set by " + now.Source + "; change it there", About: now}
	}
	if err := o.writeSetting(ctx, *meant, value); err != nil {
		return operations.Setting{}, err
	}
	if err := o.Record(ctx, by, "", "setting "+key, gate.Shortened(value)); err != nil {
		return operations.Setting{}, err
	}
	return o.findSetting(ctx, by, key)
}

func (o *Handler) findSetting(ctx context.Context, by operation.Caller, key string) (operations.Setting, error) {
	all, err := o.Settings(ctx, by, operation.None{})
	for _, s := range all.Items {
		if s.Key == key {
			return s, nil
		}
	}
	return operations.Setting{}, err
}

// writeSetting changes one value of settings.json.
func (o *Handler) writeSetting(ctx context.Context, k config.Key, value string) error {
	parsed, err := parseValue(k, value)
	if err != nil {
		return err
	}
	return o.ChangeSettings(ctx, k, func(doc map[string]any) error {
		put(doc, strings.Split(k.Path, "."), parsed)
		return nil
	})
}

// ChangeSettings lets change modify the contents of settings.json, validates the new file next to the old one before
// replacing it, and applies it. If it is not valid, nothing changes.
func (o *Handler) ChangeSettings(ctx context.Context, k config.Key, change func(doc map[string]any) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.app.Settings.Copies().Change(ctx, filepath.Base(o.app.Home.Settings()), func(data []byte) ([]byte, error) {
		doc := map[string]any{}
		if len(strings.TrimSpace(string(data))) > 0 {
			if err := json.Unmarshal(data, &doc); err != nil {
				return nil, operation.Errorf(operation.Conflict, "%s cannot be read, so nothing was changed: %v", o.app.Home.Settings(), err)
			}
		}
		if err := change(doc); err != nil {
			return nil, err
		}
		data, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			return nil, err
		}
		data = append(data, '\n')
		return data, o.tryOut(k, data)
	})
	if mistake, ok := errors.AsType[*documents.CheckError](err); ok {
		return operation.Errorf(operation.Conflict, "%s cannot be used, so nothing was changed: %v", mistake.Path, mistake.Err)
	}
	if err != nil {
		return err
	}
	return o.app.Settings.Reread()
}

// parseValue parses a value for its key; nil removes it.
func parseValue(k config.Key, text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	switch k.Kind {
	case config.Integer:
		if n, err := strconv.Atoi(text); err == nil {
			return n, nil
		}
	case config.Number:
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n, nil
		}
	case config.Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return b, nil
		}
	case config.List: // a JSON list, or separated by commas
		var list []string
		if strings.HasPrefix(strings.TrimSpace(text), "[") {
			if err := json.Unmarshal([]byte(text), &list); err == nil {
				return list, nil
			}
			break
		}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, nil
	default:
		return text, nil
	}
	return nil, operation.InvalidField("value", "%s must be a %s, not %.80q", k.Path, k.Kind, text)
}

func put(doc map[string]any, path []string, value any) {
	if len(path) > 1 {
		inner, ok := doc[path[0]].(map[string]any)
		if !ok {
			inner = map[string]any{}
			doc[path[0]] = inner
		}
		put(inner, path[1:], value)
		if len(inner) == 0 {
			delete(doc, path[0])
		}
		return
	}
	if value == nil {
		delete(doc, path[0])
	} else {
		doc[path[0]] = value
	}
}

// tryOut loads the configuration with another settings.json.
func (o *Handler) tryOut(k config.Key, data []byte) error {
	tmp, err := os.CreateTemp(o.app.Home.Dir(), ".settings-*.json")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	options := o.app.Settings.Live.Options
	options.Settings = tmp.Name()
	files, problems := config.ReadFiles(options)
	if err := problems.Err(); err != nil {
		return operation.InvalidField("value", "%s", strings.ReplaceAll(err.Error(), tmp.Name(), "settings.json"))
	}
	bot, problems := files.Bot(config.Ask{})
	if err := problems.Err(); err != nil {
		return operation.InvalidField("value", "%s", strings.ReplaceAll(err.Error(), tmp.Name(), "settings.json"))
	}
	switch k.Path {
	case "permissions":
		_, err = settings.Profile(bot, bot.Permissions)
	case "defaultModel":
		_, err = o.app.Models.Name("", bot.DefaultModel)
	case "sandbox":
		err = o.app.Isolation.Check(context.Background(), bot.Sandbox, o.app.Home.Dir())
	}
	if err != nil {
		return operation.InvalidField("value", "%v", err)
	}
	return nil
}
