// A bot on discord.js with what is newest: cards of components that are edited in place, a form with menus, proposals while
// somebody types, being added to a server, and threads and channels that are deleted. Prints what it heard, one line each.
import { createRequire } from "node:module";
const require = createRequire(process.env.MODULES + "/");
const { ButtonBuilder, ButtonStyle, Client, ContainerBuilder, Events, GatewayIntentBits, LabelBuilder, MessageFlags, ModalBuilder, SectionBuilder, SeparatorBuilder, SlashCommandBuilder, StringSelectMenuBuilder, TextDisplayBuilder, TextInputBuilder, TextInputStyle } =
  require("discord.js");

const say = (what, more = {}) => console.log(JSON.stringify({ what, ...more }));
const { Guilds, GuildMessages, MessageContent } = GatewayIntentBits;
const client = new Client({ intents: [Guilds, GuildMessages, MessageContent], rest: { api: process.env.API, timeout: 20_000 } });

const card = (text) =>
  new ContainerBuilder()
    .setAccentColor(0x5865f2)
    .addSectionComponents(new SectionBuilder().addTextDisplayComponents(new TextDisplayBuilder().setContent(text)).setButtonAccessory(new ButtonBuilder().setCustomId("order").setLabel("Order").setStyle(ButtonStyle.Secondary)))
    .addSeparatorComponents(new SeparatorBuilder())
    .addTextDisplayComponents(new TextDisplayBuilder().setContent("the rest"));
const menu = () => new StringSelectMenuBuilder().setCustomId("size").setMinValues(1).setMaxValues(2).addOptions({ label: "Small", value: "s", default: true }, { label: "Large", value: "l" }, { label: "Huge", value: "h" });
const form = () =>
  new ModalBuilder()
    .setCustomId("form")
    .setTitle("Your order")
    .addLabelComponents(new LabelBuilder().setLabel("Size").setDescription("one or two").setStringSelectMenuComponent(menu()), new LabelBuilder().setLabel("Name").setTextInputComponent(new TextInputBuilder().setCustomId("name").setStyle(TextInputStyle.Short)));

client.once(Events.ClientReady, (c) => say("ready", { count: c.guilds.cache.size }));
client.on(Events.GuildCreate, async (guild) => {
  await guild.commands.set([new SlashCommandBuilder().setName("find").setDescription("finds").addStringOption((o) => o.setName("what").setDescription("what").setAutocomplete(true))]);
  const channel = guild.channels.cache.find((ch) => ch.name === "general");
  const made = await channel.send({ flags: MessageFlags.IsComponentsV2, components: [card("step 1")] });
  const changed = await made.edit({ components: [card("step 2")] });
  const box = changed.components[0];
  say("joined", { name: guild.name, content: box.components[0].components[0].content, count: box.components.length, text: made.id });
});
client.on(Events.InteractionCreate, async (i) => {
  if (i.isAutocomplete()) {
    await i.respond(["apple", "pear"].filter((f) => f.startsWith(i.options.getFocused())).map((f) => ({ name: f.toUpperCase(), value: f })));
    say("typing", { content: i.options.getFocused() });
  } else if (i.isButton()) {
    await i.showModal(form());
  } else if (i.isModalSubmit()) {
    say("filled", { content: i.fields.getStringSelectValues("size").join("+"), name: i.fields.getTextInputValue("name") });
    await i.deferUpdate();
    await i.message.edit({ components: [card("ordered")] });
  }
});
client.on(Events.ThreadDelete, (t) => say("thread gone", { name: t.name, text: t.parentId }));
client.on(Events.ChannelDelete, (ch) => say("channel gone", { name: ch.name }));
process.on("unhandledRejection", (e) => { say("error", { text: String(e?.stack ?? e) }); process.exit(1); });
client.login(process.env.TOKEN);
