// A small bot on discord.js, which is not ours: it answers messages, commands, buttons and
// modals, and prints what it heard, one line each.
import { createRequire } from "node:module";
const require = createRequire(process.env.MODULES + "/");
const { Client, GatewayIntentBits, Events, ActionRowBuilder, ButtonBuilder, ButtonStyle, MessageFlags, SlashCommandBuilder, ModalBuilder, TextInputBuilder, TextInputStyle } = require("discord.js");

const say = (what, more = {}) => console.log(JSON.stringify({ what, ...more }));
const { Guilds, GuildMessages, MessageContent, GuildMessageReactions, GuildMembers } = GatewayIntentBits;
const client = new Client({ intents: [Guilds, GuildMessages, MessageContent, GuildMessageReactions, GuildMembers], rest: { api: process.env.API } });

client.once(Events.ClientReady, async (c) => {
  const guild = c.guilds.cache.first();
  await guild.commands.set([new SlashCommandBuilder().setName("ping").setDescription("asks").addStringOption((o) => o.setName("word").setDescription("what").setRequired(true))]);
  say("ready", { name: c.user.username, channels: guild.channels.cache.size, members: (await guild.members.fetch()).size });
});
client.on(Events.ShardResume, () => say("resumed"));
client.on(Events.MessageReactionAdd, (r, user) => { if (!user.bot) say("reaction", { emoji: r.emoji.name, count: r.count }); });
client.on(Events.MessageCreate, async (m) => {
  if (m.author.bot) return;
  say("message", { content: m.content, author: m.author.username });
  if (m.content === "bye") { await client.destroy(); process.exit(0); }
  const row = new ActionRowBuilder().addComponents(new ButtonBuilder().setCustomId("go").setLabel("Go").setStyle(ButtonStyle.Primary));
  const answer = await m.reply({ content: "re: " + m.content, components: [row], files: [{ attachment: Buffer.from("log"), name: "log.txt" }] });
  await answer.edit("RE: " + m.content);
  await m.react("✅");
  const history = await m.channel.messages.fetch({ after: m.id });
  const thread = await answer.startThread({ name: "talk" });
  await thread.send("in the thread");
  await m.channel.send("x".repeat(2001)).catch((e) => say("refused", { code: e.code, after: history.size }));
});
client.on(Events.InteractionCreate, async (i) => {
  if (i.isChatInputCommand()) {
    await i.deferReply({ flags: MessageFlags.Ephemeral });
    await i.editReply("pong " + i.options.getString("word"));
    await i.followUp("and for all");
  } else if (i.isButton()) {
    await i.showModal(new ModalBuilder().setCustomId("why").setTitle("Why").addComponents(new ActionRowBuilder().addComponents(new TextInputBuilder().setCustomId("reason").setLabel("Reason").setStyle(TextInputStyle.Short))));
  } else if (i.isModalSubmit()) {
    await i.reply("because " + i.fields.getTextInputValue("reason"));
  }
});
process.on("unhandledRejection", (e) => { say("error", { text: String(e?.stack ?? e) }); process.exit(1); });
client.login(process.env.TOKEN);
