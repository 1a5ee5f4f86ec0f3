// One request to tacit's daemon, with a deadline. Whatever the daemon does, `ask` answers in time and never throws.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";

const MOST = 4_000_000; // bytes of an answer
const FAILURES = 3; // in a row, after which nobody is asked for a while
const PAUSE_MS = 2_000; // the first pause; each further one is twice as long
const LONGEST_PAUSE_MS = 60_000;

export class Daemon {
  constructor(home, now = () => performance.now()) {
    this.home = home;
    this.now = now;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
    this.failures = 0;
    this.closedUntil = 0;
    this.trying = false;
  }

  // `body`: an object, or its JSON where that is made already.
  // {ok: true, value} or {ok: false, why}. `answered`: the daemon is there, it only refused.
  async ask(target, body, ms) {
    if (!this.#mayAsk()) return { ok: false, why: "tacit did not answer lately, so it is left alone for a while" };
    const isTrial = this.trying;
    const told = await this.#request(target, body, ms);
    this.#learn(told.answered, isTrial);
    return told;
  }

  // Whether somebody listens, without the pause that failures bring.
  async isUp(ms) {
    const told = await this.#request("/v1/health", null, ms);
    if (told.ok) this.#learn(true, false);
    return told.ok;
  }

  socket() {
    try {
      const said = JSON.parse(fs.readFileSync(path.join(this.home, ".tacit", "daemon.json"), "utf8")).socket;
      if (typeof said === "string" && said) return said;
    } catch {
      // no daemon has run here yet
    }
    return path.join(this.home, ".tacit", "daemon.sock");
  }

  #mayAsk() {
    if (this.failures < FAILURES) return true;
    if (this.now() < this.closedUntil || this.trying) return false;
    this.trying = true; // one of them goes to see
    return true;
  }

  #learn(answered, isTrial) {
    if (answered) {
      this.failures = 0;
      this.trying = false;
      return;
    }
    // Who was on the way already when the pause began tells nothing new.
    if (this.failures >= FAILURES && !isTrial) return;
    if (isTrial) this.trying = false;
    this.failures += 1;
    if (this.failures >= FAILURES) {
      const pause = Math.min(LONGEST_PAUSE_MS, PAUSE_MS * 2 ** (this.failures - FAILURES));
      this.closedUntil = this.now() + pause;
    }
  }

  #request(target, body, ms) {
    return new Promise((resolve) => {
      let request;
      const done = (told) => {
        clearTimeout(timer);
        resolve(told);
      };
      const timer = setTimeout(() => {
        done({ ok: false, answered: false, why: `no answer within ${ms} ms` });
        request?.destroy();
      }, ms);
      try {
        const data = body === null ? null : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
        request = http.request(
          {
            socketPath: this.socket(),
            agent: this.agent,
            method: data ? "POST" : "GET",
            path: target,
            headers: { host: "tacit", ...(data && { "content-type": "application/json", "content-length": data.length }) },
          },
          (answer) => collect(answer, done),
        );
        request.on("error", (error) => done({ ok: false, answered: false, why: error.code || error.message }));
        request.end(data ?? undefined);
      } catch (error) {
        done({ ok: false, answered: false, why: String(error?.message ?? error) });
      }
    });
  }
}

function collect(answer, done) {
  const parts = [];
  let size = 0;
  answer.on("data", (part) => {
    size += part.length;
    if (size > MOST) answer.destroy(new Error("the answer is too long"));
    else parts.push(part);
  });
  answer.on("error", (error) => done({ ok: false, answered: false, why: error.message }));
  answer.on("end", () => done(read(answer.statusCode, Buffer.concat(parts).toString("utf8"))));
}

function read(status, text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, answered: false, why: `answered ${status} with something that is no JSON` };
  }
  if (value === null || typeof value !== "object") return { ok: false, answered: false, why: "answered with no object" };
  if (status === 200 || status === 202) return { ok: true, answered: true, value };
  return { ok: false, answered: status !== 503, refused: status >= 400 && status < 500, why: value.error?.message ?? `answered ${status}` };
}
