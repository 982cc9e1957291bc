// Reads payloads of Chorus, a JSON line each, and has the builders of discord.js hold them against Discord's rules. Prints what they refuse.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
const require = createRequire(process.env.MODULES + "/");
const { createComponentBuilder, ModalBuilder, SlashCommandStringOption, enableValidators } = require("@discordjs/builders");

enableValidators();
const read = {
  message: (list) => list.forEach((part) => createComponentBuilder(part).toJSON()),
  modal: (data) => new ModalBuilder(data).toJSON(),
  proposals: (list) => list.length && new SlashCommandStringOption().setName("x").setDescription("x").addChoices(...list).toJSON(),
};
let seen = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { kind, data } = JSON.parse(line);
  seen++;
  try {
    read[kind](data);
  } catch (e) {
    console.log(`${kind}: ${e.message} ${JSON.stringify(e.errors ?? e.given ?? "").slice(0, 300)}\n${line.slice(0, 2000)}`);
  }
}
console.log(`seen ${seen}`);
