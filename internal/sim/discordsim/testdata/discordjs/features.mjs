// What a bot on discord.js does beyond talking: threads, members, forwards, polls, search, emojis.
// Each result is printed as one line; what is refused is an error.
import { createRequire } from "node:module";
const require = createRequire(process.env.MODULES + "/");
const { Client, GatewayIntentBits, Events } = require("discord.js");

const say = (what, more = {}) => console.log(JSON.stringify({ what, ...more }));
const { Guilds, GuildMessages, MessageContent, GuildMembers, GuildMessagePolls } = GatewayIntentBits;
const client = new Client({ intents: [Guilds, GuildMessages, MessageContent, GuildMembers, GuildMessagePolls], rest: { api: process.env.API, timeout: 20_000, rejectOnRateLimit: (limit) => limit.sublimitTimeout > 0 } });

client.once(Events.ClientReady, async (c) => {
  const guild = c.guilds.cache.first();
  const named = (name) => guild.channels.cache.find((ch) => ch.name === name);
  const general = named("general"), random = named("random");

  const thread = await general.threads.create({ name: "talk" });
  for (let i = 0; i < 3; i++) { await thread.setLocked(i % 2 === 0); await general.setRateLimitPerUser(i); }
  await thread.setArchived(true);
  say("thread", { count: thread.archived ? 1 : 0 });

  const some = await guild.members.fetch({ query: "b", limit: 1 });
  const all = await guild.members.fetch({ query: "", limit: 0 });
  const one = await guild.members.fetch({ user: [some.first().id] });
  say("members", { count: some.size, members: all.size, name: some.first().user.username, after: one.size });

  const original = await general.send("the words of before");
  const forwarded = await original.forward(random);
  say("forward", { content: forwarded.messageSnapshots.first().content, count: forwarded.reference.type });

  const asked = await general.send({ poll: { question: { text: "Tea or coffee?" }, answers: [{ text: "Tea" }, { text: "Coffee" }], duration: 1, allowMultiselect: false } });
  const voted = new Promise((r) => c.once(Events.MessagePollVoteAdd, r));
  say("poll", { content: asked.poll.question.text, count: asked.poll.answers.size, text: asked.id });
  const vote = await voted;
  const ended = await asked.poll.end();
  say("ended", { content: vote.text, count: ended.poll.resultsFinalized ? 1 : 0, after: (await vote.voters.fetch()).size });

  const hits = await c.rest.get(`/guilds/${guild.id}/messages/search`, { query: new URLSearchParams({ content: "WORDS", author_id: c.user.id }) });
  say("search", { count: hits.total_results, content: hits.messages[0][0].content });

  const emoji = await c.application.emojis.create({ name: "wave", attachment: "data:image/png;base64,iVBORw0KGgo=" });
  const renamed = await emoji.edit({ name: "wave2" });
  const list = await c.application.emojis.fetch();
  await renamed.delete();
  say("emojis", { name: list.first().name, count: list.size, after: (await c.application.emojis.fetch(undefined, { cache: false })).size });

  await general.setTopic("one");
  await general.setTopic("two");
  const limited = await general.setTopic("three").catch((e) => e);
  say("limited", { count: limited.sublimitTimeout > 0 ? 1 : 0 });
  await client.destroy();
  process.exit(0);
});
process.on("unhandledRejection", (e) => { say("error", { text: String(e?.stack ?? e) }); process.exit(1); });
client.login(process.env.TOKEN);
