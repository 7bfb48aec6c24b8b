/**
 * A local push service with one browser, on libraries that the gateway does not use:
 * http_ece opens what is encrypted (RFC 8188, RFC 8291), node:crypto checks who sent it
 * (RFC 8292).
 */
import { createECDH, createPublicKey, randomBytes, verify } from "node:crypto";
import { createServer } from "node:http";
import ece from "http_ece";

export class PushService {
  /** What arrived: the payload as text, and the headers. */
  messages = [];
  errors = [];
  /** What the next requests are answered with. */
  status = 201;
  attempts = 0;
  #keys = createECDH("prime256v1");
  #auth = randomBytes(16);
  #server;

  static async start() {
    const s = new PushService();
    s.#keys.generateKeys();
    s.#server = createServer((request, response) => void s.#take(request, response));
    await new Promise((ready) => s.#server.listen(0, "127.0.0.1", ready));
    s.origin = `http://127.0.0.1:${s.#server.address().port}`;
    return s;
  }

  /** As a browser's PushSubscription gives itself as JSON. */
  get subscription() {
    return {
      endpoint: `${this.origin}/push/1`,
      expirationTime: null,
      keys: { p256dh: this.#keys.getPublicKey("base64url"), auth: this.#auth.toString("base64url") },
    };
  }

  close() {
    this.#server.closeAllConnections();
    return new Promise((closed) => this.#server.close(closed));
  }

  async #take(request, response) {
    const parts = [];
    for await (const part of request) parts.push(part);
    this.attempts++;
    if (this.status === 201) {
      try {
        this.messages.push(this.#read(request, Buffer.concat(parts)));
      } catch (e) {
        this.errors.push(e);
      }
    }
    response.writeHead(this.status).end();
  }

  #read(request, body) {
    const [, token, key] = /^vapid t=([^,]+), k=(.+)$/.exec(request.headers.authorization) ?? [];
    const [header, claims, signature] = token.split(".");
    const raw = Buffer.from(key, "base64url");
    const publicKey = createPublicKey({
      format: "jwk",
      key: { kty: "EC", crv: "P-256", x: raw.subarray(1, 33).toString("base64url"), y: raw.subarray(33).toString("base64url") },
    });
    const signed = verify(
      "sha256", Buffer.from(`${header}.${claims}`), { key: publicKey, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"),
    );
    if (!signed) throw new Error("the sender's signature is wrong");
    const said = JSON.parse(Buffer.from(claims, "base64url").toString());
    if (said.aud !== this.origin || said.exp * 1000 < Date.now()) throw new Error(`the token is for ${said.aud} until ${said.exp}`);
    const payload = ece.decrypt(body, { version: "aes128gcm", privateKey: this.#keys, authSecret: this.#auth.toString("base64url") });
    return { payload: payload.toString(), key, subject: said.sub, headers: request.headers };
  }
}
