/** A minimal typed event emitter. A listener that throws does not keep the others from hearing. */
export class Emitter<Events extends object> {
  #listeners = new Map<keyof Events, Set<(payload: never) => void>>();

  /** Listens; the returned function stops it. */
  on<E extends keyof Events>(event: E, listener: (payload: Events[E]) => void): () => void {
    let set = this.#listeners.get(event);
    if (!set) this.#listeners.set(event, (set = new Set()));
    set.add(listener as (payload: never) => void);
    return () => {
      this.#listeners.get(event)?.delete(listener as (payload: never) => void);
    };
  }

  emit<E extends keyof Events>(event: E, payload: Events[E]): void {
    for (const listener of [...(this.#listeners.get(event) ?? [])]) {
      try {
        (listener as (payload: Events[E]) => void)(payload);
      } catch (e) {
        queueMicrotask(() => {
          throw e;
        });
      }
    }
  }
}
