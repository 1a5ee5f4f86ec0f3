// Keeps what was said: given to the daemon one after the other, in order; where that fails, spooled by tacit-relay,
// which takes private parts and secrets out before anything touches the disk. Each record has an id of its own, so
// that one which arrives twice is kept once.
import { spawn } from "node:child_process";

const MOST_WAITING = 20_000; // records in memory, while neither daemon nor disk takes them
const AGAIN_MS = 1_000;
const LONGEST_AGAIN_MS = 60_000;
const RELAY_MS = 800; // half of it for the daemon once more, half for the disk, which goes on if it takes longer

export class Keeper {
  constructor(daemon, settings, log) {
    this.daemon = daemon;
    this.settings = settings;
    this.log = log;
    this.waiting = [];
    this.busy = null;
    this.pause = AGAIN_MS;
    this.counts = { kept: 0, spooled: 0, refused: 0, lost: 0 };
  }

  // Never waits and never throws: hooks that are not awaited call it.
  add(record) {
    try {
      this.waiting.push(JSON.stringify(record, withoutData));
    } catch (error) {
      this.log.warn(`tacit: a record cannot be kept: ${error?.message ?? error}`);
      return;
    }
    if (this.waiting.length > MOST_WAITING) {
      this.waiting.shift();
      this.counts.lost += 1;
      if (this.counts.lost % 1000 === 1) this.log.error(`tacit: ${this.counts.lost} records are lost: neither daemon nor disk takes them`);
    }
    this.busy ??= this.#drain();
  }

  // Until all is kept, or the time is over.
  async flush(ms) {
    if (!this.busy) return true;
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, ms, false)));
    const done = await Promise.race([this.busy.then(() => true), late]);
    clearTimeout(timer);
    return done;
  }

  async #drain() {
    while (this.waiting.length) {
      if (await this.#keep(this.waiting[0])) {
        this.waiting.shift();
        this.pause = AGAIN_MS;
      } else {
        await new Promise((resolve) => setTimeout(resolve, this.pause).unref());
        this.pause = Math.min(LONGEST_AGAIN_MS, this.pause * 2);
      }
    }
    this.busy = null;
  }

  async #keep(text) {
    const told = await this.daemon.ask("/v1/event", text, this.settings.deadlineMs);
    if (told.ok) {
      this.counts.kept += 1;
      return true;
    }
    if (told.refused) {
      this.counts.refused += 1;
      this.log.warn(`tacit: a record is not kept: ${told.why}`);
      return true;
    }
    return this.#spool(text);
  }

  #spool(text) {
    return new Promise((resolve) => {
      let out = "";
      const settings = ["-P", "-m", "tacit.relay", "event", "--home", this.settings.home, "--deadline-ms", String(RELAY_MS)];
      const child = spawn(this.settings.python, settings, { stdio: ["pipe", "pipe", "ignore"] });
      const done = (kept) => {
        clearTimeout(timer);
        resolve(kept);
      };
      const timer = setTimeout(() => {
        child.kill("SIGKILL");
        done(false);
      }, 10 * RELAY_MS);
      child.on("error", (error) => {
        this.log.error(`tacit: ${this.settings.python} cannot be run, so what is said waits in memory: ${error.message}`);
        done(false);
      });
      child.stdin.on("error", () => {});
      child.stdout.on("data", (part) => (out += part));
      child.on("close", () => done(this.#isSpooled(out)));
      child.stdin.end(text);
    });
  }

  #isSpooled(out) {
    let said;
    try {
      said = JSON.parse(out);
    } catch {
      return false;
    }
    if (said.reason) {
      this.log.warn(said.reason);
      return false;
    }
    this.counts[said.spooled ? "spooled" : "kept"] += 1;
    return true;
  }
}

// Pictures and files are not kept as text.
function withoutData(name, value) {
  return name === "data" && typeof value === "string" && value.length > 1000 ? undefined : value;
}
