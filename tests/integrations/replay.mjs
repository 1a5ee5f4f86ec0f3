// Loads the OpenClaw plugin as the host does and gives it recorded events, one after the other. Prints what each
// hook answered, one JSON object a line. Usage: node replay.mjs PLUGIN CONFIG-JSON HOST-CONFIG-JSON < events.jsonl
// As in the host, internal hooks are those of one copy of the module and all others those of another.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [plugin, config, host] = process.argv.slice(2);
const hooks = new Map();
const said = [];
const tell = (level) => (text) => said.push(`${level}: ${text}`);
let tools = null;

for (const copy of ["internal", "typed"]) {
  const { default: made } = await import(`${pathToFileURL(path.join(plugin, "index.js"))}?${copy}`);
  const ofCopy = (mine, work) => (mine === copy ? work : () => {});
  made.register({
    pluginConfig: JSON.parse(config),
    config: JSON.parse(host),
    logger: { info: tell("info"), warn: tell("warn"), error: tell("error"), debug: tell("debug") },
    on: ofCopy("typed", (name, handler) => hooks.set(name, handler)),
    registerHook: ofCopy("internal", (name, handler) => hooks.set(name, handler)),
    registerTool: (factory) => (tools = factory),
    registerService: () => {},
  });
}

for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { hook, event, ctx } = JSON.parse(line);
  const began = performance.now();
  let answer;
  if (hook.startsWith("tool:")) {
    const tool = tools({ sessionKey: ctx.sessionKey, agentId: ctx.agentId }).find((one) => one.name === hook.slice(5));
    answer = await tool.execute("call", event);
  } else {
    answer = await hooks.get(hook)?.(event, ctx);
  }
  const ms = performance.now() - began;
  const files = hook === "agent:bootstrap" ? event.context.bootstrapFiles : undefined;
  console.log(JSON.stringify({ hook, key: ctx?.sessionKey ?? event?.sessionKey, answer, files, ms }));
}
console.log(JSON.stringify({ hook: "log", said }));
process.exit(0);
