// The daemon's life beside the gateway: one that runs is used, and when it is gone, or none is there, one is started
// that stops with the gateway.
import { spawn } from "node:child_process";

const LOOK_MS = 1_000;
const UP_MS = 15_000; // to come up
const AGAIN_MS = [1_000, 5_000, 30_000, 120_000]; // pauses before it is started again
const STEADY_MS = 60_000; // what runs for so long is no reason for the next pause to be longer
const WATCH_MS = 5_000; // between two looks at a daemon that somebody else started

export function serviceOf(daemon, settings, log) {
  let child = null;
  let stopping = false;
  let starts = 0;
  let timer = null;

  const later = (ms) => {
    clearTimeout(timer);
    timer = setTimeout(begin, ms);
    timer.unref();
  };

  async function begin() {
    if (stopping) return;
    if (await daemon.isUp(LOOK_MS)) return later(WATCH_MS);
    if (stopping) return;
    const began = performance.now();
    child = spawn(settings.python, ["-P", "-m", "tacit", "serve", "--home", settings.home], { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.on("data", (part) => (said = (said + part).slice(-2000)));
    child.on("error", (error) => log.error(`tacit: ${settings.python} cannot be run: ${error.message}. Set plugins.entries.tacit.config.python.`));
    child.on("close", (code) => {
      child = null;
      if (stopping) return;
      log.warn(`tacit: the daemon ended (${code}). ${said.trim()}`);
      if (performance.now() - began > STEADY_MS) starts = 0;
      later(AGAIN_MS[Math.min(starts++, AGAIN_MS.length - 1)]);
    });
    await up();
  }

  async function up() {
    const until = performance.now() + UP_MS;
    while (child && !stopping && performance.now() < until) {
      if (await daemon.isUp(LOOK_MS)) return log.info(`tacit: the daemon of ${settings.home} is up`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  return {
    id: "tacit-daemon",
    // Not awaited: the gateway is up before the daemon is, and turns go on without it.
    start() {
      stopping = false;
      void begin();
    },
    async stop() {
      stopping = true;
      clearTimeout(timer);
      if (!child) return;
      const ended = new Promise((resolve) => child.on("close", resolve));
      child.kill("SIGTERM");
      const late = setTimeout(() => child?.kill("SIGKILL"), 15_000);
      await ended;
      clearTimeout(late);
    },
  };
}
