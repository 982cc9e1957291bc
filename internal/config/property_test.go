package config

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// For any subset of layers, each with its own value of a key, the strongest one's holds
// and says so; the others leave no trace.
func TestTheStrongestLayerHolds(t *testing.T) {
	t.Parallel()
	layers := []Layer{SettingsFile, Shared, Guild, GuildSettings, BotFile, BotGuild, AgentFile, ParentPin, ChannelPin, Environment, Flag}
	rapid.Check(t, func(rt *rapid.T) {
		in := map[Layer]int{}
		for _, layer := range layers {
			if rapid.Bool().Draw(rt, layer.String()) {
				in[layer] = rapid.IntRange(1, 1000).Draw(rt, "value of "+layer.String())
			}
		}
		key := rapid.SampledFrom([]string{"maxTokens", "maxQueuedReplies", "recencyWindow.characters", "retry.baseDelayMs"}).Draw(rt, "key")
		files, vars := map[string]string{}, map[string]string{}
		ask := Ask{Bot: "claude", Guild: "77", Flags: map[string]any{}}
		names := map[Layer]string{SettingsFile: "settings.json", Shared: "shared.yaml", Guild: "guilds/77.yaml", BotFile: "bots/claude.yaml", BotGuild: "bots/claude-77.yaml"}
		want, holder := -1, BuiltIn
		for _, layer := range layers {
			v, ok := in[layer]
			if !ok {
				continue
			}
			want, holder = v, layer
			switch layer {
			case SettingsFile:
				values := map[string]any{}
				put(values, splitPath(key), v)
				data, err := json.Marshal(values)
				if err != nil {
					rt.Fatal(err)
				}
				files[names[layer]] = string(data)
			case Shared, Guild, BotFile, BotGuild:
				files[names[layer]] = nested(key, fmt.Sprint(v))
			case GuildSettings:
				ask.GuildSettings = map[string]any{}
				put(ask.GuildSettings, splitPath(key), v)
			case AgentFile:
				ask.Agent = map[string]any{}
				put(ask.Agent, splitPath(key), float64(v))
			case ParentPin, ChannelPin:
				ask.Pins = append(ask.Pins, Pin{Text: ".config\n---\n" + nested(key, fmt.Sprint(v)), Parent: layer == ParentPin})
			case Environment:
				vars[variableOf(key)] = fmt.Sprint(v)
			case Flag:
				ask.Flags[key] = v
			}
		}
		b, problems := Load(optionsOf(folder(t, files), vars), ask)
		if err := problems.Err(); err != nil {
			rt.Fatal(err)
		}
		if got := b.Origin(key); got.Layer != holder {
			rt.Fatalf("%s came from %v, want %v of %v", key, got, holder, in)
		}
		if l := b.merged.get(key); want >= 0 && int(l.value.number) != want {
			rt.Fatalf("%s is %v, want %d", key, l.value.number, want)
		}
	})
}

// Merging is deep and knows no order within a layer: laying a whole file is laying its
// keys one by one.
func TestMergingKeyByKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		paths := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"maxTokens", "retry.enabled", "retry.baseDelayMs", "vendors.a.config.api_base", "vendors.b.provides", "compaction.enabled"}), 1, 6,
			rapid.ID[string]).Draw(rt, "paths")
		var whole, single merged
		for layer := range 3 {
			var leaves []leaf
			for _, path := range paths {
				switch rapid.IntRange(0, 2).Draw(rt, "what") {
				case 1:
					leaves = append(leaves, leaf{path: path, key: table().lookup(path), value: &node{form: isText, text: fmt.Sprint(layer)}})
				case 2:
					leaves = append(leaves, leaf{path: path, key: table().lookup(path), value: &node{form: isNull}})
				}
			}
			whole.lay(leaves)
			for _, l := range leaves {
				single.lay([]leaf{l})
			}
		}
		for _, path := range paths {
			a, b := whole.get(path), single.get(path)
			if (a == nil) != (b == nil) || a != nil && a.value.text != b.value.text {
				rt.Fatalf("%s: %v and %v", path, a, b)
			}
		}
	})
}

// A name of people's own comes back, whatever is in it.
func TestNamesInPaths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.String().Draw(rt, "name")
		if got := unescape(escape(name)); got != name {
			rt.Fatalf("%q became %q", name, got)
		}
	})
}
