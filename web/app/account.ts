/**
 * Who is signed in. Each tab has its own user, in sessionStorage, which survives a
 * reload and ends with the tab. Names that were used are remembered for all tabs;
 * tokens are not.
 */
import { ChatClient } from "../client/src/index.js";
import { safely } from "./stored.js";

export interface Account {
  userId: string;
  name: string;
  token: string;
  /** Signed in by name: a new token can be had by itself. */
  demo: boolean;
}

/** What the server says of itself in the page; unknown under `npm run dev`. */
export const demoMode = document.documentElement.dataset["demo"] !== "false";

const namesKey = "xabar:names";

export class SignInError extends Error {
  constructor(readonly code: string) {
    super(code);
  }
}

export function loadAccount(slot: string): Account | undefined {
  const text = safely(() => sessionStorage.getItem(slot));
  const parsed = text === null ? null : safely(() => JSON.parse(text) as Account);
  return parsed?.userId && parsed.token ? parsed : undefined;
}

export function saveAccount(slot: string, account: Account | undefined): void {
  safely(() => {
    if (account) sessionStorage.setItem(slot, JSON.stringify(account));
    else sessionStorage.removeItem(slot);
  });
}

export async function signInByName(name: string): Promise<Account> {
  let answer: Response;
  try {
    answer = await fetch("/demo/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name }),
    });
  } catch {
    throw new SignInError("offline");
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new SignInError(body?.error?.code ?? "other");
  rememberName(body.user.name);
  return { userId: body.user.id, name: body.user.name, token: body.token, demo: true };
}

/** A token says nothing that the page should trust: the gateway tells whose it is. */
export function signInByToken(token: string): Promise<Account> {
  const client = new ChatClient({ token: () => token });
  return new Promise<Account>((resolve, reject) => {
    client.events.on("session", ({ user }) => resolve({ userId: user.id, name: user.name, token, demo: false }));
    client.events.on("connection", (state) => {
      if (state.status === "refused") reject(new SignInError(state.code));
      if (state.status === "offline") reject(new SignInError("offline"));
    });
    client.start().catch(reject);
  }).finally(() => client.stop());
}

export function recentNames(): string[] {
  const text = safely(() => localStorage.getItem(namesKey));
  const names = text === null ? null : safely(() => JSON.parse(text) as unknown);
  return Array.isArray(names) ? names.filter((n): n is string => typeof n === "string").slice(0, 6) : [];
}

function rememberName(name: string): void {
  const names = [name, ...recentNames().filter((n) => n !== name)].slice(0, 6);
  safely(() => localStorage.setItem(namesKey, JSON.stringify(names)));
}

/** The client of an account. A refused token of a demo user is replaced by a new one. */
export function clientFor(account: Account, save: (a: Account) => void, answerTimeoutMs?: number): ChatClient {
  let current = account;
  return new ChatClient({
    userId: account.userId,
    answerTimeoutMs,
    token: async (fresh) => {
      if (fresh && current.demo) {
        current = await signInByName(current.name);
        save(current);
      }
      return current.token;
    },
  });
}
