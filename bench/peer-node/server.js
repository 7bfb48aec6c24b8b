// A chat server as a good Node team writes it: socket.io, its Redis adapter, pg. It does
// what the gateway does for a message: stores and numbers it, emits it with
// acknowledgements, moves the positions, keeps when that was, and empties the outbox. It
// leaves out what the gateway does beyond that (presence, notifications, catch-up, unread
// totals, order between messages in flight), which is in its favour.
//
//   PORT, DATABASE_URL, REDIS_URL (none: one node), JWT_SECRET, VARIANT (steps or cte), ACKS (off)
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { createAdapter } from "@socket.io/redis-adapter";
import { createClient } from "redis";
import { Server } from "socket.io";
import { Store } from "./store.js";

const { PORT = "0", DATABASE_URL, REDIS_URL, JWT_SECRET, VARIANT = "cte", ACKS = "on" } = process.env;
const ACK_TIMEOUT = 1000;

const store = new Store(DATABASE_URL, VARIANT);
await store.migrate();

const server = createServer();
const io = new Server(server, { serveClient: false });
if (REDIS_URL) {
  const pub = createClient({ url: REDIS_URL });
  const sub = pub.duplicate();
  await Promise.all([pub.connect(), sub.connect()]);
  io.adapter(createAdapter(pub, sub));
}

const room = (conversation) => "c:" + conversation;
const personal = (user) => "u:" + user;

function subject(token) {
  const [head, body, signature] = token.split(".");
  const want = createHmac("sha256", JWT_SECRET).update(head + "." + body).digest();
  const got = Buffer.from(signature, "base64url");
  if (got.length !== want.length || !timingSafeEqual(got, want)) throw new Error("unauthenticated");
  const claims = JSON.parse(Buffer.from(body, "base64url"));
  if (claims.exp * 1000 < Date.now()) throw new Error("token_expired");
  return claims.sub;
}

io.use(async (socket, next) => {
  try {
    socket.data.user = await store.user(subject(socket.handshake.auth.token));
    socket.join([personal(socket.data.user), ...(await store.conversationsOf(socket.data.user)).map(room)]);
    next();
  } catch (error) {
    next(error);
  }
});

// Whoever acknowledges says who it is: the answers of all nodes come together.
function deliver(socket, message) {
  const target = socket.to(room(message.conversationId));
  if (ACKS === "off") {
    target.emit("message", message);
    return;
  }
  target.timeout(ACK_TIMEOUT).emit("message", message, (_, users) => {
    if (users?.length) delivered(message, users).catch(console.error);
  });
}

async function delivered({ conversationId, seq, senderId }, names) {
  const users = await Promise.all(names.map(idOf));
  const moved = await store.move(conversationId, users, "d", seq);
  if (moved.length === 1) {
    io.to(personal(senderId)).emit("message:delivered", { conversationId, userId: moved[0], seq });
  }
}

// External ids that this node has met.
const ids = new Map();
async function idOf(name) {
  let id = ids.get(name);
  if (id === undefined) {
    id = await store.user(name);
    ids.set(name, id);
  }
  return id;
}

const handlers = {
  async "message:send"(socket, { conversationId, clientMsgId, text }) {
    const { user } = socket.data;
    const stored = await store.sendMessage(conversationId, user, clientMsgId, text);
    if (!stored) throw new Error("not_found");
    const message = { conversationId, seq: stored.seq, senderId: user, clientMsgId, text: stored.text, createdAt: stored.created_at };
    if (stored.outbox) {
      deliver(socket, message);
      store.fannedOut(stored.outbox);
    }
    return { message, duplicate: !stored.outbox };
  },
  async "message:read"(socket, { conversationId, seq }) {
    const moved = await store.move(conversationId, [socket.data.user], "r", seq);
    if (moved.length) socket.to(room(conversationId)).emit("message:read", { conversationId, userId: moved[0], seq });
    return { lastReadSeq: seq };
  },
  async "conversation:open"(socket, { userId, title, memberIds }) {
    const users = [socket.data.user, ...(await Promise.all((memberIds ?? [userId]).map(idOf)))];
    const id = memberIds ? await store.openGroup(title, users) : await store.openDirect(users[0], users[1]);
    io.in(users.map(personal)).socketsJoin(room(id));
    return { conversation: { id } };
  },
  async history(socket, { conversationId, limit = 50 }) {
    return { messages: await store.history(conversationId, socket.data.user, Math.min(limit, 50)) };
  },
  async sync(socket, { positions }) {
    return { messages: await store.sync(socket.data.user, positions) };
  },
};

io.on("connection", (socket) => {
  for (const [event, handle] of Object.entries(handlers)) {
    socket.on(event, async (payload, answer) => {
      try {
        answer({ ok: true, ...(await handle(socket, payload)) });
      } catch (error) {
        answer({ ok: false, error: { code: "internal", message: error.message } });
      }
    });
  }
  socket.on("typing", ({ conversationId }) => {
    socket.volatile.to(room(conversationId)).emit("typing", { conversationId, userId: socket.data.user });
  });
});

server.listen(Number(PORT), "127.0.0.1", () => console.log("listening on http://127.0.0.1:" + server.address().port));
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(0));
