/**
 * One Socket.IO connection to the gateway: requests with their answers as promises,
 * the server's events, the state of the connection, and, for developers, everything
 * that goes by and faults to provoke. It knows nothing of conversations.
 */
import { io, type Socket } from "socket.io-client";
import { Emitter } from "./emitter.js";
import { ChatError } from "./errors.js";
import type { ClosingEvent, Message, Requests, ServerEvents, WireError } from "./types.js";

/** Gives the token. `fresh` asks for another one than before: the last was refused. */
export type TokenSource = (fresh: boolean) => string | Promise<string>;

export type ConnectionState =
  /** Nobody has asked for a connection, or it was ended by stop(). */
  | { status: "stopped" }
  | { status: "connecting" }
  /** Connected; what was missed is being fetched. */
  | { status: "syncing" }
  | { status: "online" }
  /** Cut off; the next attempt comes by itself. */
  | { status: "offline"; reason: string }
  /** The gateway refused in a way that time does not heal. */
  | { status: "refused"; code: string; message: string };

/** Something that went by on the wire. */
export interface WireRecord {
  n: number;
  /** Milliseconds since 1970, by this machine's clock. */
  at: number;
  direction: "out" | "in" | "none";
  kind: "event" | "answer" | "ack" | "state" | "fault";
  event: string;
  payload?: unknown;
  /** The record that this one answers. */
  of?: number;
  /** How long the answer took. */
  ms?: number;
}

/** What a developer may provoke. */
export interface Faults {
  offline: boolean;
  /** Added to everything, in each direction. */
  delayMs: number;
  /** The next answer to a send is thrown away: the outbox must send again. */
  loseNextAnswer: boolean;
  /** The next message is not acknowledged by the callback. */
  loseNextAck: boolean;
}

/** The part of socket.io-client's Socket that is used here; tests bring their own. */
export interface SocketLike {
  connected: boolean;
  active: boolean;
  on(event: string, listener: (...args: any[]) => void): unknown;
  connect(): unknown;
  disconnect(): unknown;
  timeout(ms: number): { emit(event: string, ...args: any[]): unknown };
  volatile: { emit(event: string, ...args: any[]): unknown };
}

export interface WireOptions {
  /** The gateway's address; the page's own by default. */
  url?: string;
  /** Socket.IO's path; /socket.io/ by default. */
  path?: string;
  token: TokenSource;
  /** Without sticky sessions several nodes need ["websocket"]. */
  transports?: ("websocket" | "polling")[];
  /** How long to wait for an answer, in milliseconds; 10,000 by default. */
  answerTimeoutMs?: number;
  /** Makes the socket; for tests. */
  socket?: (auth: (give: (auth: object) => void) => void) => SocketLike;
}

interface WireEvents {
  state: ConnectionState;
  /** Connected: everything may be asked now. */
  up: void;
  down: string;
  record: WireRecord;
  faults: Faults;
}

type Incoming = { [E in keyof ServerEvents]: E extends "message" ? [Message, () => void] : ServerEvents[E] };

export class Wire {
  readonly events = new Emitter<WireEvents>();
  readonly incoming = new Emitter<Incoming>();
  readonly socket: SocketLike;
  #state: ConnectionState = { status: "stopped" };
  #faults: Faults = { offline: false, delayMs: 0, loseNextAnswer: false, loseNextAck: false };
  #n = 0;
  #dueAt = 0;
  #started = false;
  #refused = false; // the last attempt was refused for its token
  #closing: ClosingEvent | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  readonly #answerTimeoutMs: number;

  constructor(options: WireOptions) {
    this.#answerTimeoutMs = options.answerTimeoutMs ?? 10_000;
    const auth = (give: (auth: object) => void) => {
      Promise.resolve()
        .then(() => options.token(this.#refused))
        .then(
          (token) => give({ token, sync: true }),
          // Without a token the gateway says why it refuses; that is one way to report it.
          () => give({ token: "", sync: true }),
        );
    };
    this.socket = (options.socket ?? ((a) => officialSocket(options, a)))(auth);
    this.#listen();
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get faults(): Readonly<Faults> {
    return this.#faults;
  }

  get connected(): boolean {
    return this.socket.connected && !this.#faults.offline;
  }

  start(): void {
    this.#started = true;
    if (this.#faults.offline) return this.#setState({ status: "offline", reason: "switched off" });
    this.#setState({ status: "connecting" });
    this.socket.connect();
  }

  stop(): void {
    this.#started = false;
    clearTimeout(this.#retry);
    this.socket.disconnect();
    this.#setState({ status: "stopped" });
  }

  /** Tries at once instead of after the back-off, because the network is said to be back. */
  hurry(): void {
    if (!this.#started || this.#faults.offline || this.socket.connected || this.#state.status === "refused") return;
    this.socket.disconnect();
    this.socket.connect();
  }

  /** What has been missed is here. */
  synced(): void {
    if (this.connected) this.#setState({ status: "online" });
  }

  /** Asks and waits for the answer. Fails with a ChatError, in time: nothing waits for a connection. */
  request<E extends keyof Requests>(event: E, payload: Requests[E][0]): Promise<Requests[E][1]> {
    if (!this.connected) return Promise.reject(ChatError.offline());
    return new Promise((resolve, reject) => {
      const sent = this.#record({ direction: "out", kind: "event", event, payload });
      this.#later(() => {
        if (!this.connected) return reject(ChatError.offline());
        this.socket.timeout(this.#answerTimeoutMs).emit(event, payload, (failed: unknown, answer: unknown) => {
          if (failed) return reject(this.#noAnswer(sent));
          this.#later(() => this.#answered(sent, answer as Answer, resolve as (a: unknown) => void, reject));
        });
      });
    });
  }

  /** Sends without an answer, and not at all when the connection is busy or gone. */
  volatile(event: "typing", payload: { conversationId: string }): void {
    if (!this.connected) return;
    this.#record({ direction: "out", kind: "event", event, payload });
    this.#later(() => this.socket.volatile.emit(event, payload));
  }

  setFaults(change: Partial<Faults>): void {
    const before = this.#faults;
    this.#faults = { ...before, ...change };
    for (const [name, value] of Object.entries(change)) {
      this.#record({ direction: "none", kind: "fault", event: name, payload: value });
    }
    this.events.emit("faults", this.#faults);
    if (!this.#started || before.offline === this.#faults.offline) return;
    if (this.#faults.offline) {
      this.socket.disconnect();
      this.#setState({ status: "offline", reason: "switched off" });
    } else this.start();
  }

  #noAnswer(sent: WireRecord): ChatError {
    const error = this.socket.connected ? ChatError.timeout() : ChatError.offline();
    this.#record({
      direction: "none", kind: "answer", event: sent.event, of: sent.n, ms: Date.now() - sent.at,
      payload: `no answer: ${error.code}`,
    });
    return error;
  }

  #answered(sent: WireRecord, answer: Answer, resolve: (a: unknown) => void, reject: (e: ChatError) => void): void {
    if (sent.event === "message:send" && this.#faults.loseNextAnswer) {
      this.#used("loseNextAnswer", sent);
      const rest = Math.max(0, sent.at + this.#answerTimeoutMs - Date.now());
      setTimeout(() => reject(this.#noAnswer(sent)), rest);
      return;
    }
    this.#record({
      direction: "in", kind: "answer", event: sent.event, of: sent.n, ms: Date.now() - sent.at, payload: answer,
    });
    if (answer?.ok) return resolve(answer);
    reject(new ChatError(answer?.error ?? { code: "internal", message: "not an answer", retryable: true }));
  }

  #listen(): void {
    this.socket.on("connect", () => {
      if (!this.#started || this.#faults.offline) return;
      this.#refused = false;
      this.#closing = undefined;
      this.#record({ direction: "none", kind: "state", event: "connect" });
      this.#setState({ status: "syncing" });
      this.events.emit("up", undefined);
    });
    this.socket.on("disconnect", (reason: string) => this.#disconnected(reason));
    this.socket.on("connect_error", (e: Error & { data?: { code?: string } }) => this.#connectError(e));
    const plain = [
      "session", "message:changed", "message:delivered", "message:read", "typing", "unread",
      "conversation", "conversation:left", "presence", "session:closing",
    ] as const;
    for (const event of plain) {
      this.socket.on(event, (payload: any) => this.#later(() => {
        this.#record({ direction: "in", kind: "event", event, payload });
        if (event === "session:closing") this.#closing = payload as ClosingEvent;
        this.incoming.emit(event, payload);
      }));
    }
    this.socket.on("message", (m: Message, ack?: () => void) => this.#later(() => {
      const got = this.#record({ direction: "in", kind: "event", event: "message", payload: m });
      this.incoming.emit("message", [m, () => this.#acknowledge(got, ack)]);
    }));
  }

  #acknowledge(got: WireRecord, ack: (() => void) | undefined): void {
    if (!ack) return;
    if (this.#faults.loseNextAck) return this.#used("loseNextAck", got);
    this.#later(() => {
      this.#record({ direction: "out", kind: "ack", event: got.event, of: got.n, ms: Date.now() - got.at });
      ack();
    });
  }

  /** A fault that happens once has happened. */
  #used(fault: "loseNextAnswer" | "loseNextAck", of: WireRecord): void {
    this.#faults = { ...this.#faults, [fault]: false };
    this.#record({ direction: "none", kind: "fault", event: of.event, of: of.n, payload: fault });
    this.events.emit("faults", this.#faults);
  }

  #disconnected(reason: string): void {
    this.#record({ direction: "none", kind: "state", event: "disconnect", payload: reason });
    this.events.emit("down", reason);
    if (!this.#started || this.#faults.offline) return;
    const closing = this.#closing;
    if (closing && !closing.retry) {
      this.#setState({ status: "refused", code: closing.code, message: closing.code });
      return;
    }
    this.#setState({ status: "offline", reason: closing?.code ?? reason });
    // The official client does not come back by itself when the server ended the socket.
    if (!this.socket.active) this.#connectIn(1000);
  }

  #connectError(e: Error & { data?: { code?: string } }): void {
    this.#record({ direction: "none", kind: "state", event: "connect_error", payload: e.data ?? e.message });
    if (!this.#started || this.#faults.offline) return;
    if (this.socket.active || !e.data?.code) {
      this.#setState({ status: "offline", reason: e.message });
      if (!this.socket.active) this.#connectIn(2000);
      return;
    }
    const token = e.data.code === "unauthenticated" || e.data.code === "token_expired";
    if (token && !this.#refused) {
      this.#refused = true; // once more, with a fresh token
      this.socket.connect();
      return;
    }
    this.#setState({ status: "refused", code: e.data.code, message: e.message });
  }

  #connectIn(ms: number): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      if (this.#started && !this.#faults.offline && !this.socket.connected) this.socket.connect();
    }, ms);
  }

  /** Keeps the order, also when the delay changes meanwhile. */
  #later(run: () => void): void {
    const now = Date.now();
    if (this.#faults.delayMs === 0 && this.#dueAt <= now) return run();
    this.#dueAt = Math.max(this.#dueAt, now + this.#faults.delayMs);
    setTimeout(run, this.#dueAt - now);
  }

  #record(r: Omit<WireRecord, "n" | "at">): WireRecord {
    const record = { n: ++this.#n, at: Date.now(), ...r };
    this.events.emit("record", record);
    return record;
  }

  #setState(state: ConnectionState): void {
    this.#state = state;
    this.events.emit("state", state);
  }
}

type Answer = { ok?: boolean; error?: WireError } | undefined;

function officialSocket(options: WireOptions, auth: (give: (auth: object) => void) => void): SocketLike {
  const settings = {
    path: options.path ?? "/socket.io/",
    transports: options.transports ?? ["websocket", "polling"],
    auth,
    autoConnect: false,
    forceNew: true,
    reconnectionDelay: 300,
    reconnectionDelayMax: 5000,
    timeout: 10_000,
  };
  const socket: Socket = options.url ? io(options.url, settings) : io(settings);
  return socket;
}
