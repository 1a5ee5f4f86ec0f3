// Writes down what a hook is given, and changes the list of files in every way that could count. Whether it did
// is seen in what the model received.
import fs from "node:fs";

const kinds = (value) => Object.fromEntries(Object.entries(value ?? {}).map(([name, one]) => [name, Array.isArray(one) ? "array" : typeof one]));

export default {
  id: "tacit-probe",
  name: "tacit-probe",
  description: "Tells tacit how the hooks of this OpenClaw behave.",
  register(api) {
    api.registerHook(
      "agent:bootstrap",
      (event) => {
        const listed = event.context.bootstrapFiles;
        const entry = (name, content) => ({ name, path: `${event.context.workspaceDir}/${name}`, content, missing: false });
        const seen = { event: kinds(event), context: kinds(event.context), sessionKey: event.sessionKey ?? null, files: (listed ?? []).map((file) => ({ name: file?.name, shape: kinds(file) })) };
        fs.writeFileSync(api.pluginConfig.out, JSON.stringify(seen));
        for (const file of listed) if (file.name === "SOUL.md") file.content += "\nprobe-element\n";
        event.context.bootstrapFiles = [...listed, entry("PROBE_ASSIGNED.md", "probe-assigned")];
        event.context.bootstrapFiles.push(entry("PROBE_PUSHED.md", "probe-pushed"));
      },
      { name: "tacit-probe-bootstrap", description: "Looks at the list of files." },
    );
    api.on("before_prompt_build", () => ({ prependContext: "probe-turn", appendSystemContext: "probe-standing" }));
  },
};
