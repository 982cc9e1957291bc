// Talks to a Chorus server through the official openai client; says "all well" or throws.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.BASE, apiKey: process.env.KEY, maxRetries: 0 });
const messages = [
  { role: "system", content: "be brief" },
  { role: "user", content: "hello" },
  { role: "assistant", content: "hi" },
  { role: "user", content: "!say from node\n!usage in=2 out=3" },
];

const models = [];
for await (const model of client.models.list()) models.push(model.id);
assert.ok(models.includes("agent/helper"), models.join());
assert.equal((await client.models.retrieve("agent/helper")).id, "agent/helper");

const one = await client.chat.completions.create({ model: "agent/helper", messages });
assert.equal(one.choices[0].message.content, "from node");
assert.equal(one.choices[0].finish_reason, "stop");
assert.equal(one.usage.total_tokens, 5);

let text = "", usage;
const stream = await client.chat.completions.create({ model: "agent/helper", messages, stream: true, stream_options: { include_usage: true } });
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
assert.equal(text, "from node");
assert.equal(usage.completion_tokens, 3);

const { response } = await client.chat.completions.create({ model: "agent/helper", messages }).withResponse();
const session = response.headers.get("x-chorus-session");
const again = await client.chat.completions
  .create({ model: "agent/helper", messages, metadata: { chorus_session: session } })
  .withResponse();
assert.equal(again.response.headers.get("x-chorus-session"), session);

await assert.rejects(client.chat.completions.create({ model: "gpt-4o", messages }), (e) => e instanceof OpenAI.NotFoundError && e.code === "model_not_found");
await assert.rejects(
  client.chat.completions.create({ model: "agent/helper", messages, tools: [{ type: "function", function: { name: "f" } }] }),
  (e) => e instanceof OpenAI.BadRequestError && e.param === "tools",
);
const stranger = new OpenAI({ baseURL: process.env.BASE, apiKey: "test-key", maxRetries: 0 });
await assert.rejects(stranger.models.list(), (e) => e instanceof OpenAI.AuthenticationError && e.code === "invalid_api_key");
console.log("all well");
