/**
 * The real binary as a process, and users of it without a browser. XABAR_BINARY names
 * the binary (the Go test builds it); without it, it is built here.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { io } from "socket.io-client";

/** How long to wait for what takes moments on an idle machine, in milliseconds. */
export const patience = 20_000;

let built;

/** The program's path. */
export function binary() {
  if (process.env.XABAR_BINARY) return process.env.XABAR_BINARY;
  if (!built) {
    const dir = mkdtempSync(join(tmpdir(), "xabar-bin-"));
    process.on("exit", () => rmSync(dir, { recursive: true, force: true }));
    built = join(dir, "xabar");
    execFileSync("go", ["build", "-o", built, "./cmd/xabar"], { cwd: resolve(import.meta.dirname, "../.."), stdio: "inherit" });
  }
  return built;
}

export class Gateway {
  url = "";
  adminURL = "";
  log = "";
  #args;
  #dir = mkdtempSync(join(tmpdir(), "xabar-e2e-"));
  #child;
  #listen = "127.0.0.1:0";

  constructor(args = []) {
    this.#args = args;
  }

  /** The data folder. */
  get dir() {
    return this.#dir;
  }

  static async start(args) {
    const g = new Gateway(args);
    await g.start();
    return g;
  }

  /** Starts, or starts again on the same port and data. */
  start() {
    const child = spawn(
      binary(),
      ["serve", "--demo", "--listen", this.#listen, "--admin-listen", "127.0.0.1:0", "--data-dir", this.#dir, "--log-format", "json", ...this.#args],
      { stdio: ["ignore", "ignore", "pipe"], env: cleanEnv() },
    );
    this.#child = child;
    return new Promise((ready, failed) => {
      const timer = setTimeout(() => failed(new Error(`the gateway does not listen:\n${this.log}`)), patience);
      let rest = "";
      child.stderr.setEncoding("utf8").on("data", (text) => {
        this.log = (this.log + text).slice(-1_000_000);
        const lines = (rest + text).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          if (!line.includes('"msg":"listening"')) continue;
          clearTimeout(timer);
          const at = JSON.parse(line);
          this.url = at.url;
          this.adminURL = at.admin_url;
          this.#listen = new URL(this.url).host;
          ready(this);
        }
      });
      child.once("error", failed);
      child.once("exit", (code) => {
        clearTimeout(timer);
        failed(new Error(`the gateway ended with ${code}:\n${this.log}`));
      });
    });
  }

  /** Ends it with a signal and waits for the exit. */
  end(signal = "SIGTERM") {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    return new Promise((ended, failed) => {
      const timer = setTimeout(() => {
        child.kill("SIGKILL");
        failed(new Error(`the gateway does not end on ${signal}:\n${this.log}`));
      }, 2 * patience);
      child.once("exit", () => {
        clearTimeout(timer);
        ended();
      });
      child.kill(signal);
    });
  }

  async close() {
    await this.end();
    rmSync(this.#dir, { recursive: true, force: true });
    if (this.log.includes("WARNING: DATA RACE")) throw new Error(`the gateway has a data race:\n${this.log}`);
  }

  /** A demo user on an official client of its own. */
  user(name) {
    return User.connect(this.url, name);
  }
}

function cleanEnv() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("XABAR_")));
}

export class User {
  static async connect(url, name) {
    const answer = await fetch(`${url}/demo/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name }),
    });
    if (!answer.ok) throw new Error(`demo login: ${answer.status}`);
    const { token, user } = await answer.json();
    const u = new User();
    u.id = user.id;
    u.name = user.name;
    u.token = token;
    u.socket = io(url, { auth: { token, sync: true }, transports: ["websocket"], forceNew: true });
    u.socket.on("message", (_, ack) => ack());
    await new Promise((ready, failed) => {
      u.socket.once("session", ready);
      u.socket.once("connect_error", failed);
    });
    return u;
  }

  /** Asks until the answer is final: a rate limit says when to come back. */
  async ask(event, payload) {
    for (const deadline = Date.now() + patience; ; ) {
      const answer = await this.socket.timeout(patience).emitWithAck(event, payload);
      if (answer.ok) return answer;
      if (!answer.error.retryable || Date.now() > deadline) throw new Error(`${event}: ${JSON.stringify(answer.error)}`);
      await new Promise((again) => setTimeout(again, answer.error.retryAfterMs ?? 50));
    }
  }

  async direct(userId) {
    return (await this.ask("conversation:open", { userId })).conversation;
  }

  async group(title, memberIds) {
    return (await this.ask("conversation:open", { title, memberIds })).conversation;
  }

  async send(conversationId, text, more = {}) {
    return (await this.ask("message:send", { conversationId, text, clientMsgId: crypto.randomUUID(), ...more })).message;
  }

  close() {
    this.socket.disconnect();
  }
}
