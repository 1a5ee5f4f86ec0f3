// What the owner set for this plugin, with defaults for the rest.
import os from "node:os";
import path from "node:path";

export function settingsOf(given = {}) {
  return {
    home: path.resolve(expand(given.home || process.env.TACIT_HOME || "~/tacit")),
    python: expand(given.python || "python3"),
    deadlineMs: given.deadlineMs ?? 400,
    turnText: given.turnText ?? "before",
    standingText: given.standingText ?? "after",
    bootstrap: given.bootstrap ?? true,
    inject: given.inject ?? true,
    capture: given.capture ?? true,
    tools: given.tools ?? true,
    serve: given.serve ?? true,
  };
}

function expand(name) {
  return name === "~" || name.startsWith("~/") ? os.homedir() + name.slice(1) : name;
}
