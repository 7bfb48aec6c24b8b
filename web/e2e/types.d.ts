declare module "*/gateway.mjs" {
  export const patience: number;
  export function binary(): string;
  export class Gateway {
    url: string;
    readonly dir: string;
    adminURL: string;
    log: string;
    static start(args?: string[]): Promise<Gateway>;
    start(): Promise<Gateway>;
    end(signal?: string): Promise<void>;
    close(): Promise<void>;
    user(name: string): Promise<User>;
  }
  export class User {
    id: string;
    name: string;
    token: string;
    socket: { connected: boolean };
    ask(event: string, payload: object): Promise<any>;
    direct(userId: string): Promise<{ id: string }>;
    group(title: string, memberIds: string[]): Promise<{ id: string }>;
    send(conversationId: string, text: string, more?: object): Promise<{ seq: number; text: string }>;
    close(): void;
  }
}
declare module "*/browser.mjs" {
  export function launch(): Promise<import("playwright-core").Browser>;
}
declare module "*/push-service.mjs" {
  export class PushService {
    static start(): Promise<PushService>;
    origin: string;
    status: number;
    attempts: number;
    messages: { payload: string; key: string; subject: string; headers: Record<string, string> }[];
    errors: unknown[];
    subscription: { endpoint: string; expirationTime: null; keys: { p256dh: string; auth: string } };
    close(): Promise<void>;
  }
}
