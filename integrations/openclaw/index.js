// Forwards what happens in OpenClaw to tacit's daemon and gives turns what it answers. No rules here: who may see
// what, and what a record means, is decided there. Nothing here throws into the host or holds up its loop.
import fs from "node:fs";

import { Daemon } from "./daemon.js";
import { Keeper } from "./keeper.js";
import { serviceOf } from "./service.js";
import { settingsOf } from "./settings.js";
import { NAMES, toolsOf } from "./tools.js";

const GRACE_MS = 30; // of the deadline, for the way there and back
const HISTORY = 12; // messages that a turn is told
const LONGEST = 4_000; // characters of each
const RUNS = 500; // sessions whose run is remembered
const END_MS = 3_000; // for what is said to be kept, at the end of a run and of the gateway

// The host loads this module more than once in a process and takes its hooks from different copies: agent:bootstrap
// from one, the others from another. What they know of a run, and what waits to be kept, is there once for a home. A
// newer version of the plugin begins its own.
const VERSION = JSON.parse(fs.readFileSync(new URL("./package.json", import.meta.url), "utf8")).version;
const shared = (globalThis[Symbol.for(`tacit ${VERSION}`)] ??= new Map());

function sharedOf(settings, log) {
  const known = shared.get(settings.home);
  if (known) {
    known.keeper.settings = settings;
    return known;
  }
  const daemon = new Daemon(settings.home);
  const keeper = new Keeper(daemon, settings, log);
  const made = { daemon, keeper, trouble: troubleOf(log), runs: new Map(), calls: new Map() };
  shared.set(settings.home, made);
  return made;
}

export default {
  id: "tacit",
  name: "tacit",
  description: "Memory and context for every turn.",
  register(api) {
    const settings = settingsOf(api.pluginConfig);
    const log = api.logger;
    const { daemon, keeper, trouble, runs, calls } = sharedOf(settings, log);
    const runOf = (key) => runs.get(key)?.about ?? {};
    const quietly = (what, work) => async (...given) => {
      try {
        return await work(...given);
      } catch (error) {
        log.warn(`tacit: ${what}: ${error?.message ?? error}`);
        return undefined;
      }
    };
    // The deadline is that of the run: all questions together hold it up for no longer.
    const ask = async (target, body) => {
      const run = runs.get(body.session_key) ?? begun();
      const left = settings.deadlineMs - run.held;
      if (left <= GRACE_MS) return {};
      const began = performance.now();
      const told = await daemon.ask(target, { host: "openclaw", ...body, deadline_ms: Math.floor(left - GRACE_MS) }, left);
      const ms = performance.now() - began;
      run.held += ms;
      if (!told.ok) run.lost += ms;
      told.ok ? trouble.over() : trouble.tell(`${target}: ${told.why}`, run);
      return told.ok ? told.value : {};
    };
    // Before what may take long: whether anybody is there. Who did not answer this run is not waited for again.
    const isThere = async (key) => {
      const run = runs.get(key) ?? begun();
      const left = settings.deadlineMs - run.lost;
      const began = performance.now();
      const isUp = left > GRACE_MS && (await daemon.isUp(left));
      if (!isUp) run.lost += performance.now() - began;
      return isUp;
    };
    const keep = (name, key, agent, record, more = {}) => {
      if (settings.capture && key) keeper.add({ host: "openclaw", name, session_key: key, agent, record, ...more, id: crypto.randomUUID() });
    };

    // What began the run is told here and not to the hooks that come after it.
    api.on("before_model_resolve", quietly("before_model_resolve", (event, ctx) => {
      bounded(runs, ctx.sessionKey, begun({ ...runFrom(ctx), prompt: event.prompt }), RUNS);
    }));

    if (settings.bootstrap)
      api.registerHook("agent:bootstrap", quietly("agent:bootstrap", async (event) => {
        const { sessionKey, agentId, workspaceDir, bootstrapFiles } = event.context;
        const run = runOf(sessionKey);
        const told = await ask("/v1/bootstrap", { session_key: sessionKey, agent: agentId, files: bootstrapFiles, workspace: workspaceDir, run, message: run.prompt });
        if (told.changed && Array.isArray(told.files)) event.context.bootstrapFiles = told.files;
      }), { name: "tacit-bootstrap", description: "Loads the workspace files that this session may see." });

    if (settings.inject)
      api.on("before_prompt_build", quietly("before_prompt_build", async (event, ctx) => {
        const run = { ...runFrom(ctx), prompt: event.prompt };
        const told = await ask("/v1/turn", {
          lane: "runtime",
          session_key: ctx.sessionKey,
          agent: ctx.agentId,
          message: event.currentUserMessage || event.prompt || "",
          history: recent(event.messages),
          run,
        });
        return placed(settings, told);
      }), { timeoutMs: settings.deadlineMs + 1_000 });

    // Called in the middle of writing: it must not wait, and what it returns would replace the message.
    api.on("before_message_write", (event, ctx) => {
      try {
        const { message } = event;
        for (const part of Array.isArray(message?.content) ? message.content : [])
          if (part?.type === "toolCall") bounded(calls, `${ctx.sessionKey} ${part.id}`, part.arguments, RUNS);
        const call = `${ctx.sessionKey} ${message?.toolCallId}`;
        keep("message", ctx.sessionKey, ctx.agentId, message, { run: runOf(ctx.sessionKey), arguments: calls.get(call) });
      } catch (error) {
        log.warn(`tacit: before_message_write: ${error?.message ?? error}`);
      }
    });

    const ends = (name, key, agent) => quietly(name, (event, ctx) => keep(name, key(event, ctx), agent(event, ctx), { reason: event.reason }));
    const mine = (event, ctx) => ctx.sessionKey ?? event.sessionKey;
    const whose = (event, ctx) => ctx.agentId;
    api.on("session_end", ends("session_end", mine, whose));
    api.on("after_compaction", ends("after_compaction", mine, whose));
    api.on("subagent_ended", ends("subagent_ended", (event) => event.targetSessionKey, () => undefined));
    // Where the process ends with its only run, nothing may be left in memory.
    api.on("agent_end", quietly("agent_end", async (event, ctx) => {
      runs.delete(ctx.sessionKey);
      keep("agent_end", ctx.sessionKey, ctx.agentId, {});
      await keeper.flush(END_MS);
    }));
    api.on("gateway_stop", quietly("gateway_stop", () => keeper.flush(END_MS)));

    if (settings.tools) api.registerTool(toolsOf(daemon, runOf, isThere, api.config?.plugins?.slots), { names: NAMES });
    if (settings.serve) api.registerService(serviceOf(daemon, settings, log));
  },
};

// Said once when it begins and once when it is over, with what it cost: turns come often.
function troubleOf(log) {
  let runs = 0;
  let longest = 0;
  return {
    tell(why, run) {
      if (!runs) log.warn(`tacit: ${why}. Turns go on without it.`);
      if (!run.isMissed) runs += 1;
      run.isMissed = true;
      longest = Math.max(longest, run.held);
    },
    over() {
      if (runs) log.info(`tacit: answers again; turns without it: ${runs}, held up by ${Math.round(longest)} ms at most`);
      runs = longest = 0;
    },
  };
}

// What is known of a run, and how long it was held up, and how much of that for no answer.
function begun(about = {}) {
  return { about, held: 0, lost: 0, isMissed: false };
}

function runFrom(ctx) {
  return { trigger: ctx.trigger, senderId: ctx.senderId, channel: ctx.channel, messageProvider: ctx.messageProvider, provenance: ctx.inputProvenance };
}

function bounded(map, key, value, most) {
  map.delete(key);
  map.set(key, value);
  if (map.size > most) map.delete(map.keys().next().value);
}

// The newest messages with their words only: a turn is not told what takes long to send.
function recent(messages) {
  if (!Array.isArray(messages)) return [];
  return messages.slice(-HISTORY).map((message) => ({ role: message?.role, content: words(message?.content).slice(0, LONGEST) }));
}

function words(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (part?.type === "text" ? part.text : "")).filter(Boolean).join("\n");
}

function placed(settings, { text, standing }) {
  const result = {};
  if (text) result[settings.turnText === "after" ? "appendContext" : "prependContext"] = text;
  if (standing) result[settings.standingText === "before" ? "prependSystemContext" : "appendSystemContext"] = standing;
  return Object.keys(result).length ? result : undefined;
}
