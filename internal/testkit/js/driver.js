// Runs many official Socket.IO clients in one process, for tests written in Go.
//
// One JSON object a line: requests come on stdin ({id, op, client, ...}), answers
// ({id, result} or {id, error}) and what the clients hear ({client, n, event, args})
// go to stdout. `n` counts what one client has heard, in order of arrival. The
// process ends when stdin does, so that no test leaves it behind.
//
// Binary arguments travel as {"$binary": <base64>} both ways.
"use strict";

const libraries = {
  4: require("socket.io-client"),
  3: require("socket.io-client-3"),
  2: require("socket.io-client-2"),
};

const clients = new Map();

function write(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

function pack(value) {
  if (value instanceof ArrayBuffer) value = Buffer.from(value);
  if (ArrayBuffer.isView(value)) {
    return { $binary: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  }
  if (Array.isArray(value)) return value.map(pack);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, pack(v)]));
  }
  return value;
}

function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (value !== null && typeof value === "object") {
    if (typeof value.$binary === "string") return Buffer.from(value.$binary, "base64");
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, unpack(v)]));
  }
  return value;
}

class Client {
  constructor(id, { url, version, options, auth, authSequence, acks, share, namespace }) {
    this.id = id;
    this.version = version;
    this.arrivals = 0;
    this.kept = new Map(); // acknowledgements that a test gives by hand, by arrival
    this.timers = new Set();
    this.acks = acks || {};
    this.options = { multiplex: false, forceNew: true, autoConnect: false, ...options };
    if (version === 2) this.options.query = { ...this.options.query, ...auth };
    else if (authSequence) this.options.auth = this.authFromSequence(authSequence);
    else if (auth) this.options.auth = auth;
    this.shares = Boolean(share);
    this.socket = share
      ? clients.get(share).socket.io.socket(namespace, this.options)
      : libraries[version](url + namespace, this.options);
    this.listen();
  }

  // One entry for each attempt to connect, the last one for all that follow: what a page does whose
  // auth is a function.
  authFromSequence(sequence) {
    let attempt = 0;
    return (give) => give(sequence[Math.min(attempt++, sequence.length - 1)]);
  }

  hear(event, args) {
    const n = this.arrivals++;
    write({ client: this.id, n, event, args: pack(args) });
    return n;
  }

  listen() {
    const socket = this.socket;
    if (socket.onAny) {
      socket.onAny((...args) => this.onEvent(args));
    } else {
      socket.onevent = (packet) => {
        const args = packet.data || [];
        if (packet.id != null) args.push(socket.ack(packet.id));
        this.onEvent(args);
      };
    }
    socket.on("connect", () => this.hear("connect", [{ id: socket.id, recovered: socket.recovered }]));
    socket.on("disconnect", (reason) => this.hear("disconnect", [reason]));
    for (const event of this.version === 2 ? ["connect_error", "error"] : ["connect_error"]) {
      socket.on(event, (err) => this.hear("connect_error", [this.describe(err)]));
    }
    const manager = socket.io;
    if (this.shares) return; // its connection is heard by the client that opened it
    manager.on("open", () => this.watchEngine(manager.engine));
    for (const event of ["reconnect_attempt", "reconnect", "reconnect_failed"]) {
      manager.on(event, (attempt) => this.hear("$" + event, [attempt ?? null]));
    }
  }

  describe(err) {
    if (typeof err === "string") return { message: err };
    return { message: err.message, data: err.data, description: err.description?.message ?? undefined };
  }

  watchEngine(engine) {
    this.hear("$open", [{ transport: engine.transport.name, sid: engine.id }]);
    engine.on(this.version === 4 ? "ping" : "pong", () => this.hear("$heartbeat", []));
    engine.on("upgrade", (transport) => this.hear("$upgrade", [transport.name]));
    engine.on("close", (reason) => this.hear("$close", [reason]));
  }

  onEvent(args) {
    const event = args[0];
    let ack = null;
    if (typeof args[args.length - 1] === "function") ack = args.pop();
    const n = this.hear(event, args.slice(1));
    if (ack) this.acknowledge(event, n, ack);
  }

  // The rule for an event: "now" (default), "never", "hand" (the test calls), or {after: ms}.
  acknowledge(event, n, ack) {
    const rule = this.acks[event] ?? this.acks["*"] ?? "now";
    if (rule === "never") return;
    if (rule === "now") return ack();
    if (rule === "hand") return this.kept.set(n, ack);
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      ack();
    }, rule.after);
    this.timers.add(timer);
  }

  // emit answers with the arguments of the acknowledgement. native uses the client's own
  // timeout and retries where the test is about those; else a timer of ours does, since the
  // older clients have none.
  emit({ event, args, timeoutMs, native }) {
    if (native) return this.socket.timeout(timeoutMs).emitWithAck(event, ...args).then((first) => [first]);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.timers.delete(timer);
        reject(new Error(`no acknowledgement of ${event} within ${timeoutMs} ms`));
      }, timeoutMs);
      this.timers.add(timer);
      this.socket.emit(event, ...args, (...answer) => {
        clearTimeout(timer);
        this.timers.delete(timer);
        // With ackTimeout the client puts an error in front.
        if (this.options.ackTimeout || this.options.retries) {
          const err = answer.shift();
          if (err) return reject(err);
        }
        resolve(answer);
      });
    });
  }

  ack(n, args) {
    const give = this.kept.get(n);
    if (!give) throw new Error(`nothing to acknowledge at ${n}`);
    this.kept.delete(n);
    give(...args);
  }

  // What a cut cable looks like: the stream ends without a goodbye.
  kill() {
    const transport = this.socket.io.engine.transport;
    if (transport.ws?.terminate) return transport.ws.terminate();
    transport.onError("killed by the test");
  }

  // A client that stops reading its stream, as a page in a stopped process does.
  stream() {
    const stream = this.socket.io.engine.transport.ws?._socket;
    if (!stream) throw new Error("only a websocket can be paused");
    return stream;
  }

  close() {
    for (const timer of this.timers) clearTimeout(timer);
    if (!this.shares) this.socket.io.reconnection(false);
    this.socket.close();
  }
}

const operations = {
  open: (request) => {
    clients.set(request.client, new Client(request.client, request));
  },
  connect: (_, c) => {
    c.socket.connect();
  },
  disconnect: (_, c) => {
    c.socket.disconnect();
  },
  close: (_, c) => {
    c.close();
    clients.delete(c.id);
  },
  emit: (request, c) => c.emit({ ...request, args: unpack(request.args) }).then(pack),
  // All in one turn of the event loop: what a program does that waits for nothing.
  emitAll: (request, c) =>
    Promise.all(
      request.batch.map((args) =>
        c.emit({ ...request, args: unpack(args) }).then((answer) => ({ answer: pack(answer) }), (err) => ({ error: String(err.message ?? err) })),
      ),
    ),
  send: (request, c) => {
    const socket = request.volatile ? c.socket.volatile ?? c.socket : c.socket;
    for (const args of request.batch) socket.emit(request.event, ...unpack(args));
  },
  ack: (request, c) => {
    c.ack(request.n, unpack(request.args));
  },
  acks: (request, c) => {
    c.acks = request.acks;
  },
  auth: (request, c) => {
    c.socket.auth = request.auth;
  },
  kill: (_, c) => {
    c.kill();
  },
  pause: (_, c) => {
    c.stream().pause();
  },
  resume: (_, c) => {
    c.stream().resume();
  },
  state: (_, c) => ({
    id: c.socket.id ?? "",
    connected: c.socket.connected,
    active: c.socket.active ?? false,
    transport: c.socket.io.engine?.transport?.name ?? "",
    engineId: c.socket.io.engine?.id ?? "",
  }),
};

async function handle(request) {
  const client = clients.get(request.client);
  if (request.op !== "open" && !client) throw new Error("there is no such client");
  const run = operations[request.op];
  if (!run) throw new Error(`there is no operation ${request.op}`);
  return run(request, client);
}

async function serve(line) {
  const request = JSON.parse(line);
  try {
    write({ id: request.id, result: (await handle(request)) ?? null });
  } catch (err) {
    write({ id: request.id, error: String(err?.message ?? err) });
  }
}

require("readline")
  .createInterface({ input: process.stdin, crlfDelay: Infinity })
  .on("line", serve)
  .on("close", () => {
    // Clients say goodbye, so that no server has to wait for them; then nothing keeps the process. One
    // whose server is gone would try for long.
    for (const client of clients.values()) client.close();
    setTimeout(() => process.exit(0), 2000).unref();
  });
