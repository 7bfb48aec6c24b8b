// A Socket.IO server in Node on the same Redis as a test's nodes, driven by JSON lines:
// {id, op, ...} on stdin, {id, result | error} and {event, args} on stdout. Binaries are
// {"$bin": base64}. It ends with its stdin.
"use strict";

const { createServer } = require("node:http");
const readline = require("node:readline");
const { Server } = require("socket.io");
const { createAdapter, createShardedAdapter } = require("@socket.io/redis-adapter");
const { Emitter } = require("@socket.io/redis-emitter");
const { createClient, createCluster } = require("redis");

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

function pack(v) {
  if (Buffer.isBuffer(v) || v instanceof Uint8Array) return { $bin: Buffer.from(v).toString("base64") };
  if (Array.isArray(v)) return v.map(pack);
  if (v && typeof v === "object") return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, pack(x)]));
  return v;
}

function unpack(v) {
  if (Array.isArray(v)) return v.map(unpack);
  if (v && typeof v === "object") {
    if (typeof v.$bin === "string") return Buffer.from(v.$bin, "base64");
    return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, unpack(x)]));
  }
  return v;
}

let io;
let emitter;
let redises = [];

async function connect(url, cluster) {
  const client = cluster ? createCluster({ rootNodes: cluster.map((url) => ({ url })) }) : createClient({ url });
  client.on("error", (err) => process.stderr.write(`redis: ${err}\n`));
  await client.connect();
  redises.push(client);
  return client;
}

async function start({ url, cluster, sharded, key }) {
  const pub = await connect(url, cluster);
  const sub = await connect(url, cluster);
  const adapter = sharded ? createShardedAdapter(pub, sub, { channelPrefix: key }) : createAdapter(pub, sub, { key });
  const http = createServer();
  io = new Server(http, { adapter });
  io.on("connection", (socket) => {
    socket.on("join", (rooms) => {
      socket.join(rooms);
      socket.data.user = "node";
      socket.emit("joined");
    });
  });
  io.on("hello", (...args) => say({ event: "hello", args: pack(args) }));
  io.on("question", (arg, callback) => callback(["node answers", arg]));
  if (!sharded) emitter = new Emitter(pub, { key });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  return { port: http.address().port };
}

// select applies rooms, except and flags to a server or an emitter.
function select(from, { rooms, except, volatile, timeout }) {
  let o = from;
  for (const r of rooms ?? []) o = o.to(r);
  for (const r of except ?? []) o = o.except(r);
  if (volatile) o = o.volatile;
  if (timeout) o = o.timeout(timeout);
  return o;
}

const ops = {
  start,
  emit: (c) => void select(c.emitter ? emitter : io, c).emit(c.event, ...unpack(c.args ?? [])),
  async emitAck(c) {
    return pack(await select(io, c).emitWithAck(c.event, ...unpack(c.args ?? [])));
  },
  async fetch(c) {
    const found = await select(io, c).fetchSockets();
    return found.map((s) => ({ id: s.id, rooms: [...s.rooms], data: s.data, query: s.handshake.query }));
  },
  join: (c) => void select(c.emitter ? emitter : io, c).socketsJoin(c.join),
  leave: (c) => void select(c.emitter ? emitter : io, c).socketsLeave(c.leave),
  disconnect: (c) => void select(c.emitter ? emitter : io, c).disconnectSockets(c.close),
  serverSide: (c) => void (c.emitter ? emitter : io).serverSideEmit(c.event, ...unpack(c.args ?? [])),
  async serverSideAck(c) {
    return pack(await io.serverSideEmitWithAck(c.event, ...unpack(c.args ?? [])));
  },
  count: () => io.of("/").adapter.serverCount(),
};

async function handle(line) {
  const command = JSON.parse(line);
  try {
    say({ id: command.id, result: (await ops[command.op](command)) ?? null });
  } catch (err) {
    say({ id: command.id, error: String(err?.stack ?? err) });
  }
}

readline
  .createInterface({ input: process.stdin })
  .on("line", handle)
  .on("close", () => process.exit(0));
