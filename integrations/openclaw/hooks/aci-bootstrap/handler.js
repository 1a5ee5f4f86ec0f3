// Chooses the files of a session by asking tacit's daemon. Whatever goes wrong, the host's own list stays.
// The two files that are imported are the plugin's; `tacit openclaw install --hooks-only` puts them here.
import { Daemon } from "./daemon.js";
import { settingsOf } from "./settings.js";

const NAME = "aci-bootstrap";
const GRACE_MS = 30; // of the deadline, for the way there and back
const daemons = new Map();

export default async function handler(event) {
  try {
    if (event.type !== "agent" || event.action !== "bootstrap") return;
    const { cfg, sessionKey, agentId, workspaceDir, bootstrapFiles } = event.context;
    if (!Array.isArray(bootstrapFiles)) return;
    const { home, deadlineMs } = settingsOf(cfg?.hooks?.internal?.entries?.[NAME]);
    if (!daemons.has(home)) daemons.set(home, new Daemon(home));
    const asked = { host: "openclaw", session_key: sessionKey ?? event.sessionKey, agent: agentId, files: bootstrapFiles, workspace: workspaceDir };
    const told = await daemons.get(home).ask("/v1/bootstrap", { ...asked, deadline_ms: Math.max(1, deadlineMs - GRACE_MS) }, deadlineMs);
    if (told.ok && told.value.changed && Array.isArray(told.value.files)) event.context.bootstrapFiles = told.value.files;
  } catch (error) {
    console.warn(`[${NAME}] ${error?.message ?? error}. The host's own files stay.`);
  }
}
