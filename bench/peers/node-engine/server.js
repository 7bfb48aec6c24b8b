// The engine benchmark's server (see bench/engine) on Node's socket.io.
"use strict";

const http = require("http").createServer();
const { Server } = require("socket.io");

const io = new Server(http, { pingInterval: Number(process.env.PING_INTERVAL_MS), serveClient: false });

io.on("connection", (socket) => {
  socket.on("echo", (text, answer) => answer(text));
  socket.on("publish", (text) => io.to("room").emit("m", text));
  socket.on("join", (answer) => {
    socket.join("room");
    answer();
  });
  socket.on("leave", (answer) => {
    socket.leave("room");
    answer();
  });
});

process.on("SIGUSR2", () => {
  global.gc();
  process.stdout.write("collected\n");
});
process.stdin.on("end", () => process.exit(0)).resume();
http.listen(0, "127.0.0.1", 4096, () => process.stdout.write(`listening ${http.address().port}\n`));
