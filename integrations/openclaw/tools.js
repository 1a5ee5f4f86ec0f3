// Memory tools for the model. The daemon decides what a session may see and write.
const TOOL_MS = 10_000;

const text = (description) => ({ type: "string", description });
const TOOLS = [
  {
    name: "tacit_search",
    description: "Search long-term memory: notes and past conversations. Gives passages with path and lines.",
    properties: { query: text("What to look for, in plain words."), limit: { type: "integer", minimum: 1, maximum: 20 } },
    required: ["query"],
    target: "/v1/search",
    show: (value) => (value.hits ?? []).map((hit) => `${hit.path}:${hit.lines.join("-")} (${hit.score.toFixed(2)})\n${hit.text}`).join("\n\n") || "Nothing was found.",
  },
  {
    name: "tacit_read",
    description: "Read a file of long-term memory by the path that a search gave.",
    properties: { path: text("As the search gave it."), from: { type: "integer", minimum: 1 }, lines: { type: "integer", minimum: 1, maximum: 400 } },
    required: ["path"],
    target: "/v1/read",
    show: (value) => value.text,
  },
  {
    name: "tacit_remember",
    description: "Keep one fact, decision or wish for later sessions, in one sentence.",
    properties: { text: text("The sentence."), to: text("journal (default), memory, or the path of a note.") },
    required: ["text"],
    target: "/v1/remember",
    show: (value) => value.said,
  },
  {
    name: "tacit_why",
    description: "Why this conversation was given the memories that it was given.",
    properties: { limit: { type: "integer", minimum: 1, maximum: 5 } },
    required: [],
    target: "/v1/why",
    show: (value) => value.text,
  },
];

// `slots`: which plugins the owner put into the host's slots.
export function toolsOf(daemon, runOf, isThere, slots) {
  return (context) =>
    TOOLS.map((tool) => ({
      name: tool.name,
      label: tool.name.replace("_", " "),
      description: tool.description,
      parameters: { type: "object", properties: tool.properties, required: tool.required, additionalProperties: false },
      async execute(id, given) {
        const key = context.sessionKey ?? "";
        // What the model gives comes first: it cannot say whose session this is.
        const asked = { ...given, host: "openclaw", session_key: key, agent: context.agentId, run: runOf(key), slots };
        const told = (await isThere(key)) ? await daemon.ask(tool.target, asked, TOOL_MS) : { ok: false, why: "tacit does not answer" };
        return { content: [{ type: "text", text: told.ok ? tool.show(told.value) : `Not possible now: ${told.why}` }], details: {} };
      },
    }));
}

export const NAMES = TOOLS.map((tool) => tool.name);
