// A bot on discord.js that reads what another bot shows, and prints each message of components as a line: its parts by their
// kind, its words, its buttons and menus.
import { createRequire } from "node:module";
const require = createRequire(process.env.MODULES + "/");
const { Client, GatewayIntentBits, Events, MessageFlags, ComponentType } = require("discord.js");

const { Guilds, GuildMessages, MessageContent } = GatewayIntentBits;
const client = new Client({ intents: [Guilds, GuildMessages, MessageContent], rest: { api: process.env.API, timeout: 20_000 } });
const print = (line) => console.log(JSON.stringify(line));

function* parts(list) {
  for (const c of list) {
    yield c;
    if (c.components) yield* parts(c.components);
    if (c.accessory) yield c.accessory;
  }
}

function show(what, m) {
  if (!m.flags.has(MessageFlags.IsComponentsV2)) return;
  const all = [...parts(m.components)];
  print({ what, id: m.id, content: m.content, embeds: m.embeds.length, kinds: all.map((c) => ComponentType[c.type]), words: all.filter((c) => c.type === ComponentType.TextDisplay).map((c) => c.content).join("\n"),
    buttons: all.filter((c) => c.type === ComponentType.Button).map((c) => c.label) });
}

client.on(Events.MessageCreate, (m) => show("made", m));
client.on(Events.MessageUpdate, (_, m) => show("changed", m));
client.once(Events.ClientReady, () => print({ what: "ready" }));
client.on("error", (e) => print({ what: "error", words: String(e) }));
await client.login(process.env.TOKEN);
