// Adds what tacit gives for the message of this run as ETHOS_CONTEXT.md. A run's list of files does not tell its
// message, so it is remembered from the event before, by session, and used once.
import { Daemon } from "./daemon.js";
import { settingsOf } from "./settings.js";

const NAME = "ethos-context";
const FILE = "ETHOS_CONTEXT.md";
const GRACE_MS = 30; // of the deadline, for the way there and back
const SESSIONS = 500; // whose message is remembered
const daemons = new Map();
const messages = new Map();

export default async function handler(event) {
  try {
    if (event.type === "message" && event.action === "received") remember(event);
    if (event.type === "agent" && event.action === "bootstrap") await add(event);
  } catch (error) {
    console.warn(`[${NAME}] ${error?.message ?? error}. The run goes on without it.`);
  }
}

function remember({ sessionKey, context }) {
  const { content, channelId, metadata } = context;
  messages.delete(sessionKey);
  messages.set(sessionKey, { message: content, run: { senderId: metadata?.senderId, channel: channelId, prompt: content } });
  if (messages.size > SESSIONS) messages.delete(messages.keys().next().value);
}

async function add(event) {
  const { cfg, agentId, workspaceDir, bootstrapFiles } = event.context;
  const key = event.context.sessionKey ?? event.sessionKey;
  const said = messages.get(key);
  messages.delete(key); // what begins the next run may be no message at all
  if (!said?.message || !Array.isArray(bootstrapFiles)) return;
  const { home, deadlineMs } = settingsOf(cfg?.hooks?.internal?.entries?.[NAME]);
  if (!daemons.has(home)) daemons.set(home, new Daemon(home));
  const asked = { host: "openclaw", lane: "runtime", session_key: key, agent: agentId, ...said };
  const told = await daemons.get(home).ask("/v1/turn", { ...asked, deadline_ms: Math.max(1, deadlineMs - GRACE_MS) }, deadlineMs);
  const content = told.ok ? [told.value.standing, told.value.text].filter(Boolean).join("\n\n") : "";
  if (!content) return;
  const others = event.context.bootstrapFiles.filter((file) => file?.name !== FILE);
  event.context.bootstrapFiles = [...others, { name: FILE, path: `${workspaceDir}/${FILE}`, content, missing: false }];
}
